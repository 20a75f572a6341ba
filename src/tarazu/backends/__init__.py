"""Model servers: how they are asked, started and pooled."""
