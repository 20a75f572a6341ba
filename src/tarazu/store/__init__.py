"""The books in SQL: schema, migrations and the ledger."""
