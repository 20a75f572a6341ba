"""Run the migrations on the connection that `tarazu.store.migrate` hands over, inside its transaction."""

from alembic import context

from tarazu.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
