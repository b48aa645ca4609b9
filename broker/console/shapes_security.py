"""What the console's API answers about users, ACLs and quotas (see shapes.py)."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Cursor


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user that the broker stores."""

    name: str
    mechanisms: tuple[str, ...]
    iterations: tuple[int, ...]
    """Of each mechanism."""


@dataclass(frozen=True, slots=True)
class UserPage(Cursor):
    """Users of SCRAM; those of PLAIN stand in the configuration."""

    items: tuple[UserRow, ...]


@dataclass(frozen=True, slots=True)
class AclRow:
    """One rule: who may, or may not, do what to which resources, from where."""

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
    """Whether the broker has access control; without, everybody may do everything."""
    items: tuple[AclRow, ...]


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One limit."""

    name: str
    user: str | None
    client_id: str | None
    ip: str | None
    """Of these whose it is; <default> stands for all without a limit of their own."""
    key: str
    value: float


@dataclass(frozen=True, slots=True)
class QuotaPage(Cursor):
    """Limits."""

    items: tuple[QuotaRow, ...]
