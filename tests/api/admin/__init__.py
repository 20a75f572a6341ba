"""Black-box tests of the admin API."""
