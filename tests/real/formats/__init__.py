"""Data directories of each release, which every later release must open.

Each release adds two archives, of a broker that was stopped and of one that was killed, and the
file of what clients saw before: ``python -m tests.real.formats.write`` writes those of the current
version. A file that was released never changes; docs/compatibility-promise.md has the promise.
"""
