"""Commands that read or write data directories."""
