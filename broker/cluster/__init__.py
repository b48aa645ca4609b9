"""Which brokers there are, and what each of them leads."""
