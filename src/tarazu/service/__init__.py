"""The order of things: the life of a completion, provisioning, the audit, the configuration, the running service."""
