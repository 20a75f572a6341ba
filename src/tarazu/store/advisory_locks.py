"""The numbers of the advisory locks that are taken on PostgreSQL: all in one place, so that no two are the same."""

MIGRATION_LOCK = 0x7472_617A
"""Whoever migrates holds it."""
SWEEP_LOCK = 0x7472_7377
"""A sweep holds it."""
REFERENCE_LOCKS = 0x7472_7265
"""The first half of the locks on references, of credits and of creations; the second is the reference's hash."""
