"""Responses of the console's API about users, ACLs and quotas (see shapes.py)."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Cursor


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user that the broker stores."""

    name: str
    mechanisms: tuple[str, ...]
    iterations: tuple[int, ...]
    """Iterations of each mechanism."""


@dataclass(frozen=True, slots=True)
class UserPage(Cursor):
    """SCRAM users; PLAIN users are in the configuration."""

    items: tuple[UserRow, ...]


@dataclass(frozen=True, slots=True)
class AclRow:
    """One ACL: user, operation, resources, host, and whether it allows or denies."""

    principal: str
    permission: str
    operation: str
    resource_type: str
    name: str
    pattern: str
    host: str


@dataclass(frozen=True, slots=True)
class AclPage(Cursor):
    """ACLs."""

    enabled: bool
    """Whether the broker has access control; otherwise every user has all permissions."""
    items: tuple[AclRow, ...]


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One limit."""

    name: str
    user: str | None
    client_id: str | None
    ip: str | None
    """IP address of the entity; <default> is for all without a quota of their own."""
    key: str
    value: float


@dataclass(frozen=True, slots=True)
class QuotaPage(Cursor):
    """Limits."""

    items: tuple[QuotaRow, ...]
