"""The benchmark of what grows with workers, services, accounts and the size of the books, and the model beside it."""
