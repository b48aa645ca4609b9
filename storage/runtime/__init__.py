"""What storage takes from the machine: time, threads and chance, each at one door.

A simulated machine (``barnabas.broker.testing.world``) stands behind the same doors.
"""
