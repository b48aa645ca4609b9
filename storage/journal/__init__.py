"""The journal: commit groups, their order, and the writes that make them durable."""
