"""Identity of a client, as ACLs, quotas and the log name it."""

from __future__ import annotations

from typing import Final, NamedTuple

USER: Final = "User"


class Principal(NamedTuple):
    """Name of a client, and the kind of the name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")


def user(name: str) -> Principal:
    """Return the principal of a user."""
    return Principal(USER, name)
