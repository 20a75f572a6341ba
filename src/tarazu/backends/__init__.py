"""Model servers: the port that they are asked through, the kinds of them, and the pool of each model."""
