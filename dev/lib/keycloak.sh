# shellcheck shell=bash
# shellcheck disable=SC2153 # PORT and NAME are set by select_service
# An OpenID Connect provider: Keycloak, from Maven Central, with the realm postrider, which keycloak_realm describes.

keycloak_names() { echo keycloak; }
keycloak_port() { echo 25395; }

KEYCLOAK_VERSION=26.7.0 # needs Java 17, which Debian 12 has

keycloak_program() { echo "$BASE/programs/keycloak-$KEYCLOAK_VERSION"; }

# The build selects the database and compiles the settings, which takes longer than a start. Its
# result is stored with the program.
keycloak_install() {
  local target name=keycloak-quarkus-dist
  target=$(keycloak_program)
  if [[ -d $target ]]; then return; fi
  java_install
  say "fetching Keycloak $KEYCLOAK_VERSION (176 MB)"
  rm -rf "$target.part"
  mkdir -p "$target.part"
  maven copy "-Dartifact=org.keycloak:$name:$KEYCLOAK_VERSION:zip" "-DoutputDirectory=$target.part"
  (cd "$target.part" && jar --extract --file "$name-$KEYCLOAK_VERSION.zip") || die "could not unpack Keycloak"
  bash "$target.part/keycloak-$KEYCLOAK_VERSION/bin/kc.sh" build --db=dev-file >"$BASE/keycloak-build.log" 2>&1 ||
    die "could not build Keycloak; see $BASE/keycloak-build.log"
  chmod -R a+rX "$target.part"
  mv "$target.part/keycloak-$KEYCLOAK_VERSION" "$target"
  rm -rf "$target.part"
}

# Keycloak imports a realm only if it does not exist, and never updates one. A changed realm
# therefore needs a new database.
keycloak_init() {
  local realm=$DIR/data/import/postrider-realm.json part
  as_server mkdir -p "$DIR/data/import"
  # Its home combines the server's own data with links to the program's folders.
  for part in conf lib providers themes; do as_server ln -sfn "$(keycloak_program)/$part" "$DIR/$part"; done
  if [[ ! -e $realm || $(keycloak_realm) != "$(<"$realm")" ]]; then
    if is_running; then keycloak_stop; fi
    rm -rf "$DIR/data/h2"
    keycloak_realm | as_server tee "$realm" >/dev/null
  fi
}

# keycloak_realm prints the realm. The users are viewer, operator and admin. Each is in the group
# postrider-NAME and has the realm role NAME and the role NAME of the client roles.example.com. The
# user nobody has no group and no role. The email address of the user unverified, a viewer, is not
# verified, as Keycloak creates users. Every password is "secret".
#
#   console             what docs/console-access.md describes: a secret, PKCE, groups
#   roles.example.com   tells roles of the realm in the ID token and those of the client when asked, and no groups
#   brief               as console, but its tokens last for a second
#   other               as console, for tokens that were issued to somebody else
#   shared              as other, but the console is in the audience of its tokens too
#
# Keycloak takes a loopback redirect address without a port for those with any port.
keycloak_realm() {
  local groups audience realm_roles client_roles list='"jsonType.label": "String", "multivalued": "true"' roles
  roles='[{"name": "viewer"}, {"name": "operator"}, {"name": "admin"}]'
  groups=$(keycloak_mapper groups oidc-group-membership-mapper id.token '"claim.name": "groups", "full.path": "false"')
  audience=$(keycloak_mapper audience oidc-audience-mapper id.token '"included.client.audience": "console"')
  realm_roles=$(keycloak_mapper realm-roles oidc-usermodel-realm-role-mapper id.token "\"claim.name\": \"realm_access.roles\", $list")
  # shellcheck disable=SC2016 # Keycloak replaces the name of the client
  client_roles=$(keycloak_mapper client-roles oidc-usermodel-client-role-mapper userinfo.token \
    '"claim.name": "resource_access.${client_id}.roles", '"$list")
  cat <<EOT
{
  "realm": "postrider",
  "enabled": true,
  "groups": [{"name": "postrider-viewer"}, {"name": "postrider-operator"}, {"name": "postrider-admin"}],
  "roles": {"realm": $roles, "client": {"roles.example.com": $roles}},
  "clients": [
    $(keycloak_client console "$groups"),
    $(keycloak_client roles.example.com "$realm_roles, $client_roles"),
    $(keycloak_client brief "$groups" ', "access.token.lifespan": "1"'),
    $(keycloak_client other "$groups"),
    $(keycloak_client shared "$groups, $audience")
  ],
  "users": [
    $(keycloak_user viewer true "$(keycloak_rights viewer)"),
    $(keycloak_user operator true "$(keycloak_rights operator)"),
    $(keycloak_user admin true "$(keycloak_rights admin)"),
    $(keycloak_user unverified false "$(keycloak_rights viewer)"),
    $(keycloak_user nobody true)
  ]
}
EOT
}

# keycloak_mapper NAME KIND PLACE SETTINGS adds claims about users to the id.token or to
# userinfo.token, which is the userinfo response.
keycloak_mapper() {
  echo "{\"name\": \"$1\", \"protocol\": \"openid-connect\", \"protocolMapper\": \"$2\", \"config\": {$4, \"$3.claim\": \"true\"}}"
}

# keycloak_client NAME MAPPERS [ATTRIBUTES]
keycloak_client() {
  cat <<EOT
{
      "clientId": "$1", "protocol": "openid-connect", "publicClient": false, "secret": "secret-of-$1-for-tests-only",
      "standardFlowEnabled": true, "directAccessGrantsEnabled": false,
      "redirectUris": ["http://127.0.0.1/auth/callback", "http://127.0.0.1/postrider/auth/callback"],
      "attributes": {"pkce.code.challenge.method": "S256"${3-}},
      "protocolMappers": [$2]
    }
EOT
}

# keycloak_user NAME VERIFIED [RIGHTS]
keycloak_user() {
  cat <<EOT
{
      "username": "$1", "enabled": true, "email": "$1@example.com", "emailVerified": $2, "firstName": "The", "lastName": "$1",
      "credentials": [{"type": "password", "value": "secret"}]${3:+, $3}
    }
EOT
}

# keycloak_rights ROLE
keycloak_rights() { echo "\"groups\": [\"postrider-$1\"], \"realmRoles\": [\"$1\"], \"clientRoles\": {\"roles.example.com\": [\"$1\"]}"; }

# Not by its own script, which would be the parent of the server. Its host name is not an IP
# address, so that browsers treat it as another site than a console at 127.0.0.1, as in production.
keycloak_start() {
  local open=() package
  for package in lang util util.concurrent security; do open+=("--add-opens=java.base/java.$package=ALL-UNNAMED"); done
  daemon_launch env KC_BOOTSTRAP_ADMIN_USERNAME=admin KC_BOOTSTRAP_ADMIN_PASSWORD=secret \
    java -Xms64m -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "${open[@]}" \
    -Djava.util.logging.manager=org.jboss.logmanager.LogManager -Dpicocli.disable.closures=true \
    -Djava.util.concurrent.ForkJoinPool.common.threadFactory=io.quarkus.bootstrap.forkjoin.QuarkusForkJoinWorkerThreadFactory \
    "-Dkc.home.dir=$DIR" -cp "$DIR/lib/quarkus-run.jar" io.quarkus.bootstrap.runner.QuarkusEntryPoint \
    start --optimized --import-realm --cache=local --http-enabled=true --http-host=127.0.0.1 "--http-port=$PORT" \
    "--hostname=http://localhost:$PORT"
}

keycloak_ready() { [[ -n $(keycloak_pid) ]] && http_ok "$PORT" /realms/postrider/.well-known/openid-configuration; }
keycloak_pid() { daemon_pid; }
keycloak_stop() { daemon_stop 30; }
keycloak_env() { export_line "$(env_name KEYCLOAK)" "http://localhost:$PORT/realms/postrider"; }
