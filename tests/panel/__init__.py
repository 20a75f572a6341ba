"""The panel: its pure parts, and its pages over HTTP."""
