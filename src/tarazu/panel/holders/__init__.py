"""The account holders' pages, one module for each place of the navigation."""
