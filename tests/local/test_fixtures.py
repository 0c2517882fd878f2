"""The servers that all other tests stand on."""

import psycopg
import redis


def test_each_test_gets_a_database_of_its_own(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        assert connection.info.server_version >= 180000
        connection.execute("CREATE TABLE mine (id int)")


def test_a_database_has_nothing_of_the_test_before(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT to_regclass('mine')").fetchone()
    assert row == (None,)


def test_valkey_keeps_an_append_only_file_and_evicts_nothing(valkey_url: str) -> None:
    with redis.Redis.from_url(valkey_url, decode_responses=True) as client:
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.dbsize() == 0
