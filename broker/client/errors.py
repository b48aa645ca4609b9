"""What keeps a client from its broker."""

from __future__ import annotations


class Unreachable(Exception):
    """No broker there, or the connection broke; another attempt may succeed.

    After a broken connection it is not known whether the last requests arrived.
    """


class NotKafka(Unreachable):
    """What answered does not speak Kafka's protocol as we do: another attempt ends likewise."""
