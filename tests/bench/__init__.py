"""Tests of the benchmarks: what they measure is measured right, and what would make a figure worthless is found."""
