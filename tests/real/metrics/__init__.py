"""Metrics of processor time, and of what client libraries have done."""
