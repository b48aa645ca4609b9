"""Interface to the machine: time, threads and random values.

A simulated machine (``barnabas.broker.testing.world``) implements the same interface.
"""
