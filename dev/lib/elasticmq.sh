# shellcheck shell=bash
# An emulator of Amazon SQS: ElasticMQ, from Maven Central. It keeps queues and messages in memory
# only. Unlike moto, it is safe for many concurrent clients, and keeps the order of a message group
# while one of its messages is in flight.

elasticmq_names() { echo elasticmq; }
elasticmq_port() { echo 25392; }

ELASTICMQ_VERSION=1.7.1

elasticmq_program() { echo "$BASE/programs/elasticmq-$ELASTICMQ_VERSION"; }

elasticmq_install() {
  local target
  target=$(elasticmq_program)
  if [[ -d $target ]]; then return; fi
  java_install
  say "fetching ElasticMQ $ELASTICMQ_VERSION"
  rm -rf "$target.part"
  mkdir -p "$target.part"
  cat >"$target.part/pom.xml" <<EOT
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>postrider</groupId>
  <artifactId>elasticmq</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.elasticmq</groupId>
      <artifactId>elasticmq-server_2.13</artifactId>
      <version>$ELASTICMQ_VERSION</version>
    </dependency>
  </dependencies>
</project>
EOT
  maven copy-dependencies -f "$target.part/pom.xml" -DincludeScope=runtime "-DoutputDirectory=$target.part/libs"
  chmod -R a+rX "$target.part"
  mv "$target.part" "$target"
}

elasticmq_init() {
  as_server tee "$DIR/elasticmq.conf" >/dev/null <<EOT
include classpath("application.conf")
node-address { protocol = http, host = 127.0.0.1, port = $PORT, context-path = "" }
rest-sqs { enabled = true, bind-hostname = 127.0.0.1, bind-port = $PORT, sqs-limits = strict }
rest-stats.enabled = false
EOT
}

elasticmq_start() {
  daemon_launch java -Xms64m -Xmx512m -XX:+UseSerialGC "-Dconfig.file=$DIR/elasticmq.conf" \
    -cp "$(elasticmq_program)/libs/*" org.elasticmq.server.Main
}

elasticmq_ready() { [[ -n $(elasticmq_pid) ]] && http_ok "$PORT" '/?Action=ListQueues'; }
elasticmq_pid() { daemon_pid; }
elasticmq_stop() { daemon_stop 10; }
elasticmq_env() { export_line "$(env_name ELASTICMQ)" "http://127.0.0.1:$PORT"; }
