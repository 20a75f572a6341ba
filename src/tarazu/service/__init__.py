"""The order of things: configuration, completions, provisioning, audit, serving."""
