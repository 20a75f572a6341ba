"""The public HTTP API: parse, call, encode."""
