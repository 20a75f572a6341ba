"""The admin API: what operators do with commands, as JSON, for programs that hold an admin token."""
