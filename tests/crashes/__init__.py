"""The service under load while its processes, its database and its connections are taken away: the books stay exact."""
