"""A simulated machine: time, threads, random values and a network, all decided by a seed.

The broker and its clients run in the simulation unchanged. They run on real threads, one thread at
a time. See ``world.World``.
"""
