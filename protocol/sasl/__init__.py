"""SASL as Kafka uses it: the messages of each mechanism, and what both sides make of them.

No I/O, no clock, no store: credentials, random numbers and the time are handed in.
"""
