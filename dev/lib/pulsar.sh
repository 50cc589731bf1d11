# shellcheck shell=bash
# Apache Pulsar: broker and bookie in one process, without functions and stream storage.

pulsar_names() { echo pulsar; }
pulsar_port() { echo 25360; }

PULSAR_VERSION=4.0.8

pulsar_program() { echo "$BASE/programs/pulsar-$PULSAR_VERSION"; }

pulsar_install() {
  local target file
  target=$(pulsar_program)
  if [[ -d $target ]]; then return; fi
  java_install
  say "fetching Pulsar $PULSAR_VERSION (245 MB)"
  rm -rf "$target.part"
  mkdir -p "$target.part"
  maven copy "-Dartifact=org.apache.pulsar:pulsar-server-distribution:$PULSAR_VERSION:tar.gz:bin" \
    "-DoutputDirectory=$target.part"
  file=$target.part/pulsar-server-distribution-$PULSAR_VERSION-bin.tar.gz
  tar -xzf "$file" -C "$target.part" --strip-components=1 --no-same-owner
  rm -f "$file"
  chmod -R a+rX "$target.part"
  mv "$target.part" "$target"
}

# pulsar_init edits the shipped settings in place: Pulsar reads the file in two ways, which disagree
# on which of two lines for one key wins. Without allowEphemeralPorts the bookie ignores its port
# and takes a random one. Without acknowledgments inside a batch, one unacknowledged message causes
# redelivery of its whole batch.
pulsar_init() {
  local plain=$PORT secure=()
  if [[ -e $DIR/initialised ]]; then return; fi
  if is_secure; then
    plain=$(extra_port plain)
    mapfile -t secure < <(pulsar_secure)
  fi
  sed -e "s/^brokerServicePort=.*/brokerServicePort=$plain/" \
    -e "s/^webServicePort=.*/webServicePort=$(extra_port http)/" \
    -e "s/^bindAddress=.*/bindAddress=127.0.0.1/" \
    -e "s/^advertisedAddress=.*/advertisedAddress=127.0.0.1/" \
    -e '$a listeningInterface=lo\nallowEphemeralPorts=true\nacknowledgmentAtBatchIndexLevelEnabled=true' \
    "${secure[@]}" \
    "$(pulsar_program)/conf/standalone.conf" | as_server tee "$DIR/standalone.conf" >/dev/null
  as_server touch "$DIR/initialised"
}

# Clients with a token of postrider may do everything; those of restricted may only receive from
# permitted topics; all others may do nothing. The HTTP interface has no TLS.
pulsar_secure() {
  local token
  ca_make
  if [[ ! -s $DIR/secret.key ]]; then head -c 32 /dev/urandom | as_server tee "$DIR/secret.key" >/dev/null; fi
  token=$(pulsar_token postrider)
  as_server tee "$DIR/token" <<<"$token" >/dev/null
  pulsar_token restricted | as_server tee "$DIR/token.restricted" >/dev/null
  cat <<EOT
-e s,^tlsCertificateFilePath=.*,tlsCertificateFilePath=$(ca_dir)/server.pem,
-e s,^tlsKeyFilePath=.*,tlsKeyFilePath=$(ca_dir)/server.key,
-e s,^tlsTrustCertsFilePath=.*,tlsTrustCertsFilePath=$(ca_dir)/ca.pem,
-e s,^authenticationEnabled=.*,authenticationEnabled=true,
-e s,^authenticationProviders=.*,authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken,
-e s,^authorizationEnabled=.*,authorizationEnabled=true,
-e s,^superUserRoles=.*,superUserRoles=postrider,
-e s,^brokerClientAuthenticationPlugin=.*,brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken,
-e s,^brokerClientAuthenticationParameters=.*,brokerClientAuthenticationParameters=token:$token,
-e s,^tokenSecretKey=.*,tokenSecretKey=file://$DIR/secret.key,
-e \$abrokerServicePortTls=$PORT
EOT
}

# pulsar_token ROLE
pulsar_token() {
  local text key
  text=$(printf %s '{"alg":"HS256"}' | base64url).$(printf %s "{\"sub\":\"$1\"}" | base64url)
  key=$(od -An -v -tx1 "$DIR/secret.key" | tr -d ' \n')
  echo "$text.$(printf %s "$text" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64url)"
}

base64url() { base64 -w0 | tr '+/' '-_' | tr -d '='; }

# The script takes memory and collector options from the environment; a blank disables the
# collector's log.
pulsar_start() {
  daemon_launch env \
    "PULSAR_STANDALONE_CONF=$DIR/standalone.conf" \
    "PULSAR_LOG_DIR=$DIR/logs" \
    'PULSAR_MEM=-Xms256m -Xmx1g -XX:MaxDirectMemorySize=1g' \
    'PULSAR_GC=-XX:+UseG1GC -XX:+PerfDisableSharedMem' \
    'PULSAR_GC_LOG= ' \
    "$(pulsar_program)/bin/pulsar" standalone --no-functions-worker --no-stream-storage \
    --metadata-dir "$DIR/data/metadata" --bookkeeper-dir "$DIR/data/bookkeeper" \
    --bookkeeper-port "$(extra_port bookkeeper)" --advertised-address 127.0.0.1
}

# The default namespace is created last; the server's own health check sends a message and reads it.
pulsar_ready() {
  local http header=''
  [[ -n $(pulsar_pid) ]] || return 1
  http=$(extra_port http)
  if is_secure; then header="Authorization: Bearer $(<"$DIR/token")\\r\\n"; fi
  http_ok "$http" /admin/v2/namespaces/public/default "$header" && http_ok "$http" /admin/v2/brokers/health "$header"
}

pulsar_pid() { daemon_pid; }
pulsar_stop() { daemon_stop 60; }

pulsar_env() {
  if is_secure; then
    export_line "$(env_name PULSAR)" "pulsar+ssl://127.0.0.1:$PORT"
    export_line "$(env_name PULSAR)_TOKEN" "$DIR/token"
    export_line POSTRIDER_TEST_CA "$(ca_dir)"
    return
  fi
  export_line "$(env_name PULSAR)" "pulsar://127.0.0.1:$PORT"
  broker_url pulsar "pulsar://127.0.0.1:$PORT"
  export_line "$(env_name PULSAR_HTTP)" "http://127.0.0.1:$(extra_port http)"
}
