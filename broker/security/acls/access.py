"""Permissions of one session, with a cache, since every request checks them.

Rules of this file:

* **A change takes effect at once.** A cache entry includes the number of the ``Generation`` in
  which it was valid; every change of ACLs, users or quotas raises that number.
* **Only common, allowed operations are cached**, up to a limit: a denied client can make up any
  number of names.
* **State that outlives a request uses ``mark``** as a proof of a permission: a number of one client
  in one generation, which no other client or later generation has.
* Without access control everything is allowed, without look-ups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from barnabas.broker.security.acls.operations import EVERY_BIT, SUPPORTED, Operation, ResourceType

OPEN_MARK: Final = 0
"""Mark of all clients if there is no access control."""

REMEMBERED: Final = frozenset((Operation.READ, Operation.WRITE, Operation.DESCRIBE))
"""Operations that are cached. The others are rare, and each is an event of the audit log."""
REMEMBERED_NAMES_MAX: Final = 10_000
"""Maximum number of cached names of one type and operation; beyond it all are dropped."""


def always() -> bool:
    """Return True, for a login that does not end by itself."""
    return True


class Generation:
    """Counter of the changes of permissions."""

    __slots__ = ("_marks", "number")

    def __init__(self) -> None:
        self.number = 0
        self._marks = OPEN_MARK

    def advance(self) -> None:
        """Invalidate all cached permissions."""
        self.number += 1

    def new_mark(self) -> int:
        """Return a number that was never returned before."""
        self._marks += 1
        return self._marks


class Judge(Protocol):
    """Decides on operations, and records its decisions."""

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
        """Whether a client may do this. ``quiet``: do not record a denial, since the client
        attempts nothing.
        """

    def may_some(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there is any resource of the type to which a client may do this (KIP-679)."""


class Access:
    """Permissions of one client from one address."""

    __slots__ = (
        "_allowed",
        "_generation",
        "_judge",
        "_mark",
        "_seen",
        "host",
        "login_holds",
        "principal",
    )

    def __init__(
        self, principal: str, host: str, judge: Judge | None, generation: Generation
    ) -> None:
        """``judge`` decides, or is None to allow everything."""
        self.principal = principal
        self.host = host
        self.login_holds: Callable[[], bool] = always
        """Whether the login's password is still valid, for long-running requests."""
        self._judge = judge
        self._generation = generation
        self._seen = generation.number
        self._mark = OPEN_MARK if judge is None else generation.new_mark()
        self._allowed: dict[int, set[str]] = {}

    @property
    def mark(self) -> int:
        """Return the number for the client's current permissions, or OPEN_MARK if all is
        allowed.
        """
        if self._judge is not None and self._seen != self._generation.number:
            self._forget()
        return self._mark

    @property
    def is_open(self) -> bool:
        """Whether everything is allowed, because there is no access control."""
        return self._judge is None

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether an operation on a resource is allowed; a denial is written to the audit log."""
        return self._may(operation, resource_type, name, quiet=False)

    def may_see(
        self, resource_type: ResourceType, name: str, operation: Operation = Operation.DESCRIBE
    ) -> bool:
        """Return whether the client may see a resource in a list."""
        return self._may(operation, resource_type, name, quiet=True)

    def may_either(self, *choices: tuple[Operation, ResourceType, str]) -> bool:
        """Whether any of several operations is allowed.

        The record has the operation that was allowed, otherwise the denial of the first.
        """
        for operation, resource_type, name in choices:
            if self._may(operation, resource_type, name, quiet=True):
                return self._may(operation, resource_type, name, quiet=False)
        return self._may(*choices[0], quiet=False)

    def may_some(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether an operation is allowed on any resource of a type."""
        judge = self._judge
        return judge is None or judge.may_some(self.principal, self.host, operation, resource_type)

    def operations_on(self, resource_type: ResourceType, name: str) -> int:
        """Return the operations that are allowed on a resource, as a bit field (KIP-430)."""
        if self._judge is None:
            return EVERY_BIT[resource_type]
        bits = 0
        for operation in SUPPORTED[resource_type]:
            if self._may(operation, resource_type, name, quiet=True):
                bits |= 1 << operation
        return bits

    def _may(
        self, operation: Operation, resource_type: ResourceType, name: str, *, quiet: bool
    ) -> bool:
        judge = self._judge
        if judge is None:
            return True
        if self._seen != self._generation.number:
            self._forget()
        key = operation << 8 | resource_type
        names = self._allowed.get(key)
        if names is not None and name in names:
            return True
        if not judge.may(self.principal, self.host, operation, resource_type, name, quiet=quiet):
            return False
        if operation not in REMEMBERED:
            return True
        if names is None or len(names) >= REMEMBERED_NAMES_MAX:
            names = self._allowed[key] = set()
        names.add(name)
        return True

    def _forget(self) -> None:
        """Clear the cache, since permissions have changed."""
        self._seen = self._generation.number
        self._mark = self._generation.new_mark()
        self._allowed.clear()


OPEN: Final = Access("User:ANONYMOUS", "", None, Generation())
"""Access of clients without access control."""


def open_from(host: str) -> Access:
    """Return the access of a client without access control, with its address."""
    return Access(OPEN.principal, host, None, Generation())
