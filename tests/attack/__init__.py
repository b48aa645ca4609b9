"""Clients that mean harm against a broker as a process, beside one that does not: `make attack`."""
