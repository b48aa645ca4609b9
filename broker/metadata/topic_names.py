"""Rules for topic names, and the names that have a meaning for the broker itself."""

from __future__ import annotations

import re

NAME_MAX_LENGTH = 249
"""Maximum length in Kafka: a directory is called ``<topic>-<partition>``, and file names end at
255."""

GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"

COORDINATED = frozenset((GROUP_OFFSETS, TRANSACTION_STATE))
"""Topics that coordinators load: all keys, each with its latest record."""
INTERNAL = frozenset((GROUP_OFFSETS, TRANSACTION_STATE, SHARE_STATE))
"""Internal topics, which only the broker itself writes to."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_problem(name: str) -> str | None:
    """Return the error in a topic's name, in Kafka's words, or None."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > NAME_MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed "
            f"length {NAME_MAX_LENGTH}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def collision_key(name: str) -> str:
    """Return a key that is equal for two names that may not both exist.

    Metric names turn "." into "_", so "a.b" and "a_b" would be one (Kafka's rule).
    """
    return name.replace(".", "_")
