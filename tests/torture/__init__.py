"""Transactions of real clients under random faults, and the histories of it: `make torture`."""
