"""What one session may do. Asked for every request, so answers are remembered.

Rules of this file:

* **A change counts at once.** Whoever remembers an answer remembers beside it the number of
  ``Generation`` at which it held; every change of ACLs, users or quotas raises that number.
* **Only what is common and allowed is remembered**, up to a limit: a client that is denied can make
  up names without end.
* **What outlives a request remembers by ``mark``** that something was allowed: the number of one
  client at one generation, so that neither another client nor a later time is taken for it.
* Without access control everything is allowed, and nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from barnabas.broker.security.acls.operations import EVERY_BIT, SUPPORTED, Operation, ResourceType

OPEN_MARK: Final = 0
"""The mark of whoever may do everything because there is no access control."""

REMEMBERED: Final = frozenset((Operation.READ, Operation.WRITE, Operation.DESCRIBE))
"""What is asked all the time; the rest is rare, and each time an event of the audit log."""
REMEMBERED_NAMES_MAX: Final = 10_000
"""Names of one type and one operation that a session remembers; then it forgets all of them."""


def always() -> bool:
    """Say that a login does not end by itself."""
    return True


class Generation:
    """Counts the changes of what clients may do."""

    __slots__ = ("_marks", "number")

    def __init__(self) -> None:
        self.number = 0
        self._marks = OPEN_MARK

    def advance(self) -> None:
        """Make everything that was remembered be asked again."""
        self.number += 1

    def new_mark(self) -> int:
        """Return a number that nobody was given before."""
        self._marks += 1
        return self._marks


class Judge(Protocol):
    """What decides, and takes note of what it has decided."""

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
        """Whether a client may do this. ``quiet``: a denial is no attempt, it only leaves out."""

    def may_some(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there is any resource of the type to which a client may do this (KIP-679)."""


class Access:
    """What one client may do, from one address."""

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
        """Without a ``judge`` everything is allowed."""
        self.principal = principal
        self.host = host
        self.login_holds: Callable[[], bool] = always
        """For what goes on for long: whether the password that was given is still the user's."""
        self._judge = judge
        self._generation = generation
        self._seen = generation.number
        self._mark = OPEN_MARK if judge is None else generation.new_mark()
        self._allowed: dict[int, set[str]] = {}

    @property
    def mark(self) -> int:
        """What stands for all that the client may do now; OPEN_MARK where that is everything."""
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
        """Whether a resource belongs into an answer that leaves out what is not allowed."""
        return self._may(operation, resource_type, name, quiet=True)

    def may_either(self, *choices: tuple[Operation, ResourceType, str]) -> bool:
        """Whether one of several operations is allowed, of which each will do.

        Noted is what has allowed it, else the denial of the first.
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
        """Ask everything again: something has changed."""
        self._seen = self._generation.number
        self._mark = self._generation.new_mark()
        self._allowed.clear()


OPEN: Final = Access("User:ANONYMOUS", "", None, Generation())
"""The access of whoever is asked nothing."""


def open_from(host: str) -> Access:
    """Return the access of whoever is asked nothing, and whose address matters."""
    return Access(OPEN.principal, host, None, Generation())
