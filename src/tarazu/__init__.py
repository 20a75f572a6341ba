"""Tarazu: a metered chat-completion service."""
