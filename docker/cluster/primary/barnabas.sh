#!/bin/sh
# Prepares a new primary. The image runs this once, on a server that nobody else can reach yet.
set -eu

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" \
  --dbname postgres <<'SQL'
\set standby_password `cat "$DATABASE_SECRETS/standby"`
\set broker_password `cat "$DATABASE_SECRETS/broker"`
CREATE ROLE standby REPLICATION LOGIN PASSWORD :'standby_password';
-- Brokers make their tables themselves: they own the database, and nothing else.
CREATE ROLE barnabas LOGIN PASSWORD :'broker_password';
CREATE DATABASE barnabas OWNER barnabas;
REVOKE ALL ON DATABASE barnabas FROM PUBLIC;
-- From the next start on each commit waits for the other server, whichever of the two is primary.
ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ("database-1", "database-2")';
SQL

echo "host replication standby all scram-sha-256" >>"$PGDATA/pg_hba.conf"
