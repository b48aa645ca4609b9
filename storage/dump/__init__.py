"""Files of a data directory as text."""
