"""What Alembic runs: the chain on the connection that `migrations.upgrade` opened and locked."""

from alembic import context

from billing.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
