"""Access control of one broker: super users, ACLs, and the default without ACLs.

A change is in the MetaStore before it counts here (``broker/metadata/access_rules.py``), and counts
from the next request on, on every connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.config.addresses import address_of
from barnabas.broker.security.acls.acls import Acl, AclFilter, AclSet, Client, Verdict
from barnabas.broker.security.acls.operations import (
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.storage.metastore.interface import AclRow

if TYPE_CHECKING:
    from barnabas.broker.security.acls.access import Generation

SUPER_USER: Final = "super user"
NO_ACLS: Final = "no ACL applies"
DEFAULT: Final = "not allowed by any ACL"


class Audit(Protocol):
    """Recorder of decisions."""

    def decided(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        allowed: bool,
        rule: str,
    ) -> None:
        """Record one decision, and its reason."""


class Authorizer:
    """Authorizer of one broker, whose ACLs are in the MetaStore."""

    def __init__(
        self,
        generation: Generation,
        super_users: Iterable[str],
        audit: Audit,
        *,
        allows_without_acls: bool,
    ) -> None:
        """``super_users`` are principals, such as "User:admin"."""
        self.acls = AclSet()
        self._generation = generation
        self._super_users = frozenset(super_users)
        self._audit = audit
        self._allows_without_acls = allows_without_acls

    def load(self, rows: Iterable[AclRow]) -> None:
        """Load the stored ACLs."""
        self.acls = AclSet(map(acl_of, rows))
        self._generation.advance()

    # ------------------------------------------------------------------------------------ decisions

    def may(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        quiet: bool,
    ) -> bool:
        """Whether a client may do this; recorded unless ``quiet``."""
        allowed, rule = self._decide(principal, host, operation, resource_type, name)
        if not quiet:
            self._audit.decided(
                principal, host, operation, resource_type, name, allowed=allowed, rule=rule
            )
        return allowed

    def may_some(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there is any resource of the type to which a client may do this (KIP-679)."""
        if principal in self._super_users:
            return True
        client = Client(principal, address_of(host))
        # A name that no resource has: its permissions are those of nearly all names.
        found = self.acls.decide(client, operation, resource_type, "")
        if found.verdict is Verdict.NO_ACLS and self._allows_without_acls:
            return True
        return self.acls.allows_some(client, operation, resource_type)

    def _decide(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> tuple[bool, str]:
        if principal in self._super_users:
            return True, SUPER_USER
        client = Client(principal, address_of(host))
        verdict, acl = self.acls.decide(client, operation, resource_type, name)
        if verdict is Verdict.NO_ACLS:
            allowed = self._allows_without_acls
            return allowed, NO_ACLS if allowed else DEFAULT
        return verdict is Verdict.ALLOWED, DEFAULT if acl is None else described(acl)

    # -------------------------------------------------------------------------------------- changes

    def change(self, added: Sequence[Acl], removed: Sequence[Acl]) -> None:
        """Add ACLs, and remove existing ones."""
        for acl in removed:
            self.acls.remove(acl)
        for acl in added:
            self.acls.add(acl)
        self._generation.advance()

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """Return the ACLs that match a filter."""
        return self.acls.matching(wanted)


def acl_of(row: AclRow) -> Acl:
    """Return the ACL in a stored row."""
    return Acl(
        ResourceType(row.resource_type),
        row.name,
        PatternType(row.pattern),
        row.principal,
        row.host,
        Operation(row.operation),
        Permission(row.permission),
    )


def row_of(acl: Acl) -> AclRow:
    """Return an ACL as a row."""
    return AclRow(*acl)


def described(acl: Acl) -> str:
    """Return an ACL as text, for the audit log."""
    return (
        f"{acl.permission.name} {acl.operation.name} {acl.pattern.name}:{acl.name}"
        f" {acl.principal} from {acl.host}"
    )
