#!/bin/sh
# After installation nothing runs: the file has to be filled in first. After an upgrade a relay that ran goes on as the new
# program; it hands its shards over, so nothing is lost.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
case "$1" in
configure) [ -z "$2" ] || systemctl try-restart postrider.service ;; # deb, $2: the version before
2) systemctl try-restart postrider.service ;;                       # rpm, an upgrade
esac
