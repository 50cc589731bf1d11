# shellcheck shell=bash
# An SMTP server that stores every mail in a Maildir, so that tests can count them.

smtp_names() { echo smtp; }
smtp_port() { echo 25325; }

smtp_install() {
  if [[ ! -x /usr/bin/aiosmtpd ]]; then apt_install python3-aiosmtpd; fi
}

smtp_init() { as_server mkdir -p "$DIR/mails/cur" "$DIR/mails/new" "$DIR/mails/tmp"; }

# -n: it already runs as an ordinary user and cannot change to another.
smtp_start() { daemon_launch /usr/bin/aiosmtpd -n -l "127.0.0.1:$PORT" -c aiosmtpd.handlers.Mailbox "$DIR/mails"; }

# The server sends a greeting to every client.
smtp_ready() { [[ -n $(smtp_pid) ]] && answers "$PORT" '' '220 *'; }
smtp_pid() { daemon_pid; }
smtp_stop() { daemon_stop 10; }
smtp_env() {
  export_line "$(env_name SMTP)" "smtp://127.0.0.1:$PORT"
  export_line "$(env_name MAILDIR)" "$DIR/mails"
}
