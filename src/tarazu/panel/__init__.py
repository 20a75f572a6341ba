"""What people open in a browser: the account holders' pages at /panel and the operators' at /admin."""
