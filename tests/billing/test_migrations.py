"""The chain of migrations: it makes what the tables say, twice is once, and two at once are safe."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

import migrations
from billing.conninfo import DatabaseUrlWrong
from billing.database import sqlalchemy_url
from billing.plans import DEFAULT_PLANS, QueueTerms, plan_from_row
from billing.tables import metadata
from gateway.access.tables import members, sessions
from gateway.fleet.tables import replicas
from migrations.versions import v0001_record, v0002_queue_terms


def test_the_migrated_schema_is_what_the_tables_say(database_url: str) -> None:
    assert replicas.metadata is members.metadata is sessions.metadata is metadata
    engine = create_engine(sqlalchemy_url(database_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"target_metadata": metadata, "compare_server_default": False})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_migrating_again_changes_nothing(database_url: str) -> None:
    migrations.upgrade(database_url)
    assert migrations.current(database_url) == migrations.head()


def test_two_at_once_on_an_empty_database_are_safe(database_url: str) -> None:
    engine = create_engine(sqlalchemy_url(database_url))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    assert migrations.current(database_url) is None
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(migrations.upgrade, [database_url, database_url]))
    assert migrations.current(database_url) == migrations.head()
    engine.dispose()


@pytest.mark.parametrize(
    ("constraint", "statement"),
    [
        ("plans_price_not_negative", "UPDATE plans SET price_cents = -1"),
        ("plans_tiers_known", "UPDATE plans SET tiers = '{free,gold}'"),
        ("plans_tiers_known", "UPDATE plans SET tiers = '{}'"),
        ("plans_envelope_positive", "UPDATE plans SET n_max = 0"),
        ("plans_envelope_positive", "UPDATE plans SET concurrency = 0"),
        ("plans_service_class_known", "UPDATE plans SET service_class = 'gold'"),
        ("plans_shares_are_percents", "UPDATE plans SET floor_percent = 51"),
        ("plans_shares_are_percents", "UPDATE plans SET share_percent = 0"),
        ("plans_queue_bounds", "UPDATE plans SET reserved_slots = -1"),
        ("plans_queue_bounds", "UPDATE plans SET queue_depth = -1"),
        ("plans_queue_bounds", "UPDATE plans SET queue_seconds = 3601"),
        ("plans_ttft_target_positive", "UPDATE plans SET ttft_target_ms = 0"),
        ("plans_beyond_quota_known", "UPDATE plans SET beyond_quota = 'free'"),
    ],
)
def test_the_database_refuses_what_can_not_be(database_url: str, constraint: str, statement: str) -> None:
    engine = create_engine(sqlalchemy_url(database_url))
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO plans (code, version, name, service_class, tiers, n_max, images_max)"
                " VALUES ('x', 1, 'X', 'free', '{free}', 1, 1)"
            )
        )
    with pytest.raises(IntegrityError, match=constraint), engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_a_url_of_another_database_is_refused_with_what_to_write() -> None:
    with pytest.raises(DatabaseUrlWrong, match="must begin with postgresql://"):
        migrations.upgrade("mysql://root@localhost/x")


def test_plans_from_before_the_queue_get_what_their_class_has_today(database_url: str) -> None:
    engine = create_engine(sqlalchemy_url(database_url))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
        connection.execute(text(v0001_record.PLANS))
        connection.execute(
            text(
                "INSERT INTO plans (code, version, name, service_class, tiers, n_max, images_max)"
                " VALUES ('old', 1, 'Old', 'free', '{free}', 1, 1), ('night', 1, 'Night', 'batch', '{free}', 1, 1)"
            )
        )
        for statement in (v0002_queue_terms.COLUMNS, v0002_queue_terms.SEEDED):
            connection.execute(text(statement))
        rows = connection.execute(text("SELECT * FROM plans ORDER BY code DESC")).mappings().all()
    old, night = (plan_from_row({**row}).queue for row in rows)
    assert old == DEFAULT_PLANS[0].queue
    assert night == QueueTerms()
    engine.dispose()
