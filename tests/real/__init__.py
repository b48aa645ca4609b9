"""Tests that need the machine: its sockets, its clock, its processor, libraries of others.

All other tests of brokers run in a ``World`` (``tests/worlds.py``): in simulated time, on simulated
threads and a simulated network, decided by a seed. A case lies here if a World cannot show what it
is about:

* ``sendfile``, descriptors, signals, sockets of the kernel;
* TLS;
* client libraries, which open sockets of their own;
* commands with threads of their own, such as ``barnabas cluster import``;
* processor time: how long a request holds the broker's loop;
* memory of the process.

Only these tests poll the machine's clock. Limits of time end what hangs, and are generous.
"""
