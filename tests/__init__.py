"""Tests of Tarazu, one folder for each layer."""
