"""All logs of a broker: opening, recovery, checkpoints."""
