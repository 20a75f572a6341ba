"""Tarazu beside others that do the like, on one core, under one load: `python -m bench.peers`."""
