"""Books of every revision that has landed, brought to the newest: at rest, under load, and cut off on the way."""
