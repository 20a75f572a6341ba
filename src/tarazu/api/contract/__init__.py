"""The contract of the API, piece by piece: made from the objects, the table of errors and the domain's bounds."""
