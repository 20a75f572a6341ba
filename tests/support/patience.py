"""How long a test waits for what must come: no claim, so far more than a machine takes that is busy with other work."""

PATIENCE_S = 180.0
