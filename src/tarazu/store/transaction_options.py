"""What a transaction may ask of the database, as execution options that each kind of engine reads at its beginning."""

READ_ONLY = "tarazu_read_only"
"""The transaction only reads. It takes no write lock, and sees one state of the books."""
RELAXED = "tarazu_relaxed"
"""The commit need not survive a power cut. It always survives the death of the process."""
