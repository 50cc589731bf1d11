# shellcheck shell=bash
# A schema registry with Confluent's REST API: Apicurio Registry, from Maven Central. It keeps
# schemas in memory only.

registry_names() { echo registry; }
registry_port() { echo 25381; }

REGISTRY_VERSION=2.6.13.Final # the newest version for Java 17, which Debian 12 has

registry_program() { echo "$BASE/programs/apicurio-registry-$REGISTRY_VERSION"; }

registry_install() {
  local target name=apicurio-registry-app
  target=$(registry_program)
  if [[ -d $target ]]; then return; fi
  java_install
  say "fetching Apicurio Registry $REGISTRY_VERSION (142 MB)"
  rm -rf "$target.part"
  mkdir -p "$target.part"
  maven copy "-Dartifact=io.apicurio:$name:$REGISTRY_VERSION:tar.gz:all" "-DoutputDirectory=$target.part"
  tar -xzf "$target.part/$name-$REGISTRY_VERSION-all.tar.gz" -C "$target.part" --no-same-owner
  rm -f "$target.part/$name-$REGISTRY_VERSION-all.tar.gz"
  chmod -R a+rX "$target.part"
  mv "$target.part" "$target"
}

registry_init() { :; }

registry_start() {
  daemon_launch java -Xms64m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dquarkus.http.host=127.0.0.1 "-Dquarkus.http.port=$PORT" -Dquarkus.http.access-log.enabled=false \
    -jar "$(registry_program)/apicurio-registry-app-$REGISTRY_VERSION-runner.jar"
}

registry_ready() { [[ -n $(registry_pid) ]] && http_ok "$PORT" /apis/ccompat/v7/subjects; }
registry_pid() { daemon_pid; }
registry_stop() { daemon_stop 30; }
registry_env() { export_line "$(env_name REGISTRY)" "http://127.0.0.1:$PORT/apis/ccompat/v7"; }
