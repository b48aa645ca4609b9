"""ACLs of a cluster, and their decision on an operation, by StandardAuthorizer's rules.

Rules of this file:

* A DENY that applies overrides every ALLOW, regardless of their order or pattern.
* ALLOW of an operation may imply others (``IMPLIED_BY``), DENY never does; ALL is every operation.
* If no ACL applies to the resource for any client, the result is NO_ACLS: a setting decides
  (``allow.everyone.if.no.acl.found``).
* Hosts are compared as addresses, not as text, so ``::1`` is ``0:0:0:0:0:0:0:1`` and
  ``::ffff:10.0.0.1`` is ``10.0.0.1``, and may be networks (CIDR), as in Apache Kafka 4.4. A new ACL
  stores the shortest form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from barnabas.broker.config.addresses import Address, network_of
from barnabas.broker.security.acls.operations import (
    ANY,
    IMPLIED_BY,
    MATCH,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

EVERYONE: Final = "User:*"
EVERYWHERE: Final = "*"


class Acl(NamedTuple):
    """ACL: an operation that a principal from a host may, or may not, do to resources."""

    resource_type: ResourceType
    name: str
    pattern: PatternType
    principal: str
    """Principal, such as "User:alice"."""
    host: str
    """Address, network in CIDR notation, or "*"."""
    operation: Operation
    permission: Permission


class Verdict(Enum):
    """Result of the ACLs for one operation on one resource."""

    ALLOWED = "allowed"
    DENIED = "denied"
    NO_ACLS = "no ACL applies to the resource"


class Decision(NamedTuple):
    """Verdict, and the ACL that caused it, or None."""

    verdict: Verdict
    acl: Acl | None = None


class Client(NamedTuple):
    """Client whose operation is decided."""

    principal: str
    host: Address | None
    """Address, or None if unknown: then only "*" applies."""


class AclFilter(NamedTuple):
    """Filter of ACLs; None matches every name, ANY every number."""

    resource_type: int = ANY
    name: str | None = None
    pattern: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def matches(self, acl: Acl) -> bool:
        """Whether the filter matches an ACL."""
        return (
            self.resource_type in {ANY, acl.resource_type}
            and self._matches_pattern(acl)
            and self.principal in {None, acl.principal}
            and (self.host is None or acl.host in _spellings(self.host))
            and self.operation in {ANY, acl.operation}
            and self.permission in {ANY, acl.permission}
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        if self.pattern not in {ANY, MATCH, acl.pattern}:
            return False
        if self.name is None:
            return True
        if self.pattern != MATCH:
            return self.name == acl.name
        if acl.pattern == PatternType.LITERAL:
            return acl.name in {self.name, WILDCARD}
        return self.name.startswith(acl.name)


class AclSet:
    """All ACLs of a cluster, indexed by the names of resources."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._acls: dict[Acl, None] = {}
        self._by_type: defaultdict[ResourceType, _Patterns] = defaultdict(_Patterns)
        for acl in acls:
            self.add(acl)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._acls)

    def __len__(self) -> int:
        return len(self._acls)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._acls

    def add(self, acl: Acl) -> None:
        """Add an ACL, unless it exists."""
        if acl not in self._acls:
            self._acls[acl] = None
            self._by_type[acl.resource_type].add(acl)

    def remove(self, acl: Acl) -> None:
        """Remove an existing ACL."""
        del self._acls[acl]
        self._by_type[acl.resource_type].remove(acl)

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """Return the ACLs that match a filter."""
        return [acl for acl in self._acls if wanted.matches(acl)]

    def decide(
        self, client: Client, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        """Return the decision of all ACLs on an operation on a resource."""
        found: Decision | None = None
        implied_by = IMPLIED_BY.get(operation, frozenset())
        for acl in self._by_type[resource_type].applying_to(name):
            if found is None:
                found = Decision(Verdict.DENIED)  # The default if any ACL applies.
            if not _is_of(acl, client):
                continue
            is_meant = acl.operation in {operation, Operation.ALL}
            if acl.permission == Permission.DENY:
                if is_meant:
                    return Decision(Verdict.DENIED, acl)
            elif found.verdict is not Verdict.ALLOWED and (is_meant or acl.operation in implied_by):
                found = Decision(Verdict.ALLOWED, acl)
        return found or Decision(Verdict.NO_ACLS)

    def allows_some(
        self, client: Client, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether a resource of the type exists to which the client may do this (KIP-679).

        That needs a literal or prefixed ALLOW that no DENY covers completely.
        """
        relevant = [
            acl
            for acl in self._by_type[resource_type].all()
            if acl.operation in {operation, Operation.ALL} and _is_of(acl, client)
        ]
        denied = _Patterns(acl for acl in relevant if acl.permission == Permission.DENY)
        return any(
            acl.permission == Permission.ALLOW and not denied.covers(acl) for acl in relevant
        )


class _Patterns:
    """ACLs of one type of resource, by the names that they apply to."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._literal: dict[str, list[Acl]] = {}
        self._prefixed: dict[str, list[Acl]] = {}
        self._prefix_lengths: dict[int, int] = {}
        """Number of different prefixes by length: few lengths need few look-ups."""
        for acl in acls:
            self.add(acl)

    def add(self, acl: Acl) -> None:
        table = self._table_of(acl)
        if acl.name not in table:
            table[acl.name] = []
            if acl.pattern == PatternType.PREFIXED:
                size = len(acl.name)
                self._prefix_lengths[size] = self._prefix_lengths.get(size, 0) + 1
        table[acl.name].append(acl)

    def remove(self, acl: Acl) -> None:
        table = self._table_of(acl)
        table[acl.name].remove(acl)
        if not table[acl.name]:
            del table[acl.name]
            if acl.pattern == PatternType.PREFIXED:
                size = len(acl.name)
                self._prefix_lengths[size] -= 1
                if not self._prefix_lengths[size]:
                    del self._prefix_lengths[size]

    def all(self) -> Iterator[Acl]:
        for table in (self._literal, self._prefixed):
            for acls in table.values():
                yield from acls

    def applying_to(self, name: str) -> Iterator[Acl]:
        yield from self._literal.get(name, ())
        if name != WILDCARD:
            yield from self._literal.get(WILDCARD, ())
        for size in self._prefix_lengths:
            if size <= len(name):
                yield from self._prefixed.get(name[:size], ())

    def covers(self, acl: Acl) -> bool:
        """Return whether these ACLs apply to every name to which ``acl`` applies."""
        if WILDCARD in self._literal:
            return True
        is_literal = acl.pattern == PatternType.LITERAL
        if is_literal and acl.name == WILDCARD:
            return "" in self._prefixed
        if is_literal and acl.name in self._literal:
            return True
        return any(
            acl.name[:size] in self._prefixed
            for size in self._prefix_lengths
            if size <= len(acl.name)
        )

    def _table_of(self, acl: Acl) -> dict[str, list[Acl]]:
        return self._literal if acl.pattern == PatternType.LITERAL else self._prefixed


def _is_of(acl: Acl, client: Client) -> bool:
    """Whether an ACL applies to this client at its address."""
    if acl.principal not in {client.principal, EVERYONE}:
        return False
    if acl.host == EVERYWHERE:
        return True
    network = network_of(acl.host)
    return client.host is not None and network is not None and client.host in network


def kept_host(host: str) -> str | None:
    """Return the stored form of an ACL's host, or `None` if it is not valid.

    A zone (``fe80::1%eth0``) is refused: the rule would apply in every zone.
    """
    if "%" in host:
        return None
    network = EVERYWHERE if host == EVERYWHERE else network_of(host)
    if network is None or isinstance(network, str):
        return network
    is_single = network.prefixlen == network.max_prefixlen
    return str(network.network_address if is_single else network)


@lru_cache(maxsize=4096)
def _spellings(host: str) -> frozenset[str]:
    """Return the spellings of a host that a filter matches: as given, for older ACLs, and as
    stored.
    """
    return frozenset((host, kept_host(host) or host))
