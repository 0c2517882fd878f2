#!/bin/sh
# Makes ./secrets for docker compose, once; what is there is kept, as new passwords would not fit the data.
set -eu
cd "$(dirname "$0")/.."
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

if [ -e secrets ]; then
    echo "secrets/ is there already and is kept" >&2
    exit 0
fi
mkdir -m 700 secrets
postgres=$(random)
valkey=$(random)
printf '%s' "$postgres" >secrets/postgres_password
printf 'postgresql://faregate:%s@postgres:5432/faregate' "$postgres" >secrets/database_url
printf 'requirepass %s\n' "$valkey" >secrets/valkey_settings
printf 'redis://:%s@valkey:6379/0' "$valkey" >secrets/redis_url
random >secrets/key_pepper
# Containers run as other users and see the files alone; on this machine the folder keeps everybody else out.
chmod 444 secrets/*
echo "made secrets/: keep a copy of key_pepper, without it no API key works any more" >&2
