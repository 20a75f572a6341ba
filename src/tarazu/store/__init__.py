"""The books: accounts, keys, requests, top-ups and daily usage, in SQL."""
