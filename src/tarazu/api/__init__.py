"""The HTTP API: routes that parse, call the service and encode."""
