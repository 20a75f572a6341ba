"""Benchmarks: each is a module to run, and says what it measures."""
