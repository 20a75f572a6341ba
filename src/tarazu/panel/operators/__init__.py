"""The operators' pages, one module for each thing that they are about."""
