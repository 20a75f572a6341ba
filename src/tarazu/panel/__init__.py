"""Pages for account holders, at /panel, and for operators, at /admin."""
