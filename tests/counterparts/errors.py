"""The one way a counterpart says that it cannot be had."""


class MissingCounterpart(Exception):
    """A counterpart is neither present nor installable here; the message says how to get it."""
