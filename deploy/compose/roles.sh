#!/bin/sh
# Runs once, when PostgreSQL creates its data folder: creates logins that own nothing, and the
# groups that they will be members of. The migration grants those groups their rights.
set -eu
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
  --set=relay="$(cat /run/secrets/relay_password)" --set=app="$(cat /run/secrets/app_password)" <<'SQL'
CREATE ROLE postrider_producer;
CREATE ROLE postrider_consumer;
CREATE ROLE postrider_relay;
CREATE ROLE postrider_operator;
CREATE ROLE relay LOGIN PASSWORD :'relay' IN ROLE postrider_relay, postrider_operator;  -- operator: for the console
CREATE ROLE app LOGIN PASSWORD :'app' IN ROLE postrider_producer, postrider_consumer;
SQL
