# shellcheck shell=bash
# Apache Kafka, one node that is broker and controller, from the jars on Maven Central.

kafka_names() { echo kafka; }
kafka_port() { echo 25340; }

KAFKA_VERSION=4.3.1
KAFKA_LOG4J_VERSION=2.25.2

kafka_program() { echo "$BASE/programs/kafka-$KAFKA_VERSION"; }

kafka_install() {
  local target
  target=$(kafka_program)
  if [[ -d $target ]]; then return; fi
  java_install
  say "fetching Kafka $KAFKA_VERSION"
  rm -rf "$target.part"
  mkdir -p "$target.part"
  cat >"$target.part/pom.xml" <<EOT
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>postrider</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>$KAFKA_VERSION</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>$KAFKA_VERSION</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>$KAFKA_LOG4J_VERSION</version>
    </dependency>
  </dependencies>
</project>
EOT
  maven copy-dependencies -f "$target.part/pom.xml" -DincludeScope=runtime "-DoutputDirectory=$target.part/libs"
  chmod -R a+rX "$target.part"
  mv "$target.part" "$target"
}

kafka_java() {
  printf '%s\n' java -Xms256m -Xmx512m -XX:+UseG1GC -Djava.awt.headless=true -cp "$(kafka_program)/libs/*" \
    "-Dlog4j2.configurationFile=$DIR/log4j2.properties"
}

# In a cluster, the controller's port belongs to the cluster.
kafka_controller() { if [[ $KIND == kafka_cluster ]]; then kafka_cluster_controller "$VERSION"; else extra_port controller; fi; }

# Kafka advertises an address to clients. With POSTRIDER_KAFKA_PROXY, an address, there is a second
# listener that advertises the proxy; its port is in port.proxied.
kafka_listeners() {
  local more='' advertised='' protocol=''
  if is_secure; then
    kafka_secure_listeners
    return
  fi
  if [[ -n ${POSTRIDER_KAFKA_PROXY:-} ]]; then
    more=,PROXIED://127.0.0.1:$(extra_port proxied)
    advertised=,PROXIED://$POSTRIDER_KAFKA_PROXY
    protocol=,PROXIED:PLAINTEXT
  fi
  echo "listeners=PLAINTEXT://127.0.0.1:$PORT,CONTROLLER://127.0.0.1:$(kafka_controller)$more"
  echo "advertised.listeners=PLAINTEXT://127.0.0.1:$PORT$advertised"
  echo "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT$protocol"
}

# Clients need TLS and a login: by password, by SCRAM, or by an unsigned token. The user is
# postrider, the password secret.
kafka_secure_listeners() {
  ca_make
  cat "$(ca_dir)/server.key" "$(ca_dir)/server.pem" | as_server tee "$DIR/keystore.pem" >/dev/null
  cat <<EOT
listeners=SECURE://127.0.0.1:$PORT,INTERNAL://127.0.0.1:$(extra_port internal),CONTROLLER://127.0.0.1:$(kafka_controller)
advertised.listeners=SECURE://127.0.0.1:$PORT,INTERNAL://127.0.0.1:$(extra_port internal)
listener.security.protocol.map=SECURE:SASL_SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INTERNAL
# ANONYMOUS are the nodes among themselves, which must vote before any ACL can be read. Clients have
# a name.
super.users=User:ANONYMOUS
ssl.keystore.type=PEM
ssl.keystore.location=$DIR/keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location=$(ca_dir)/ca.pem
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512,OAUTHBEARER
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_postrider="secret";
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
EOT
}

kafka_init() {
  kafka_format "$(kafka_properties 1 "1@127.0.0.1:$(kafka_controller)" 1 1)"
}

# kafka_properties NODE VOTERS REPLICAS INSYNC prints the settings of a node that is broker and controller.
kafka_properties() {
  cat <<EOT
process.roles=broker,controller
node.id=$1
controller.quorum.voters=$2
controller.listener.names=CONTROLLER
$(kafka_listeners)
log.dirs=$DIR/data
default.replication.factor=$3
min.insync.replicas=$4
offsets.topic.replication.factor=$3
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=$3
transaction.state.log.min.isr=$4
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=$3
share.coordinator.state.topic.min.isr=$4
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
# After a crash the restarted controller waits this long for the old broker before it accepts the
# new one.
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=500
# Everything is allowed except what a test forbids.
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
EOT
}

# kafka_format PROPERTIES
kafka_format() {
  local java users=()
  if [[ -e $DIR/initialised ]]; then return; fi
  rm -rf "$DIR/data" # left by an interrupted attempt
  as_server tee "$DIR/log4j2.properties" >/dev/null <<'EOT'
appender.stdout.type = Console
appender.stdout.name = STDOUT
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d %p %m (%c)%n
rootLogger.level = INFO
rootLogger.appenderRef.stdout.ref = STDOUT
EOT
  as_server tee "$DIR/server.properties" >/dev/null <<<"$1"
  mapfile -t java < <(kafka_java)
  # A cluster ID is 16 bytes in base64; these are "postrider-test-1".
  if is_secure; then users=(--add-scram 'SCRAM-SHA-512=[name=postrider,password=secret]'); fi
  as_server "${java[@]}" kafka.tools.StorageTool format -t cG9zdHJpZGVyLXRlc3QtMQ -c "$DIR/server.properties" "${users[@]}" \
    >>"$DIR/format.log" 2>&1 || die "could not format; see $DIR/format.log"
  as_server touch "$DIR/initialised"
}

kafka_start() {
  local java
  mapfile -t java < <(kafka_java)
  daemon_launch "${java[@]}" kafka.Kafka "$DIR/server.properties"
}

# The request is Metadata for all topics: length, key 3, version 4, correlation ID 65, no client ID,
# null, false. The response: length, correlation ID, no throttling, one broker. A broker is listed
# once it has joined, which is later than its port opens.
kafka_ready() {
  local at=$PORT
  if is_secure; then at=$(extra_port internal); fi
  [[ -n $(kafka_pid) ]] &&
    answers_bytes "$at" '\0\0\0\017\0\003\0\004\0\0\0\0101\0377\0377\0377\0377\0377\0377\0' \
      '????????000000410000000000000001'
}

kafka_pid() { daemon_pid; }
kafka_stop() { daemon_stop 60; }
kafka_env() {
  export_line "$(env_name KAFKA)" "127.0.0.1:$PORT"
  if is_secure; then export_line POSTRIDER_TEST_CA "$(ca_dir)"; fi
  broker_url kafka "kafka://127.0.0.1:$PORT"
}
