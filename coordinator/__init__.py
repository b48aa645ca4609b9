"""Decisions of the transaction and group coordinators: pure functions and state machines."""
