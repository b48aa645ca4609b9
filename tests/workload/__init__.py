"""Clients that send, transact, transform and read, through faults.

``operations.py`` has what a client does as data, and ``plans.py`` draws it from a seed. A driver
(``drivers/``) performs it by wire or by a client library. ``journal.py`` turns what happened into a
history, and ``tests/history`` checks that. The same clients run as threads of a World or as
processes. Faults and the proxy that cuts connections are those of ``barnabas prove``.
"""
