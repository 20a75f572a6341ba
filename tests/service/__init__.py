"""Tests of the order of things."""
