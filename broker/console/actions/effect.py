"""What an action does, as it is shown before and after."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.broker.console.shapes import Wide


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changes."""

    what: str
    before: str | None
    after: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Effect:
    """What an action has done, or would do."""

    as_of: Wide
    action: str
    resource: str
    dry_run: bool
    """Whether nothing was done."""
    based_on: str
    """What the thing was like: to be sent along with what cannot be undone."""
    summary: str
    figures: dict[str, Wide]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What an action would do, and what it goes by."""

    summary: str
    figures: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    basis: tuple[object, ...] = ()
    """What must not have changed between a look and a deed."""
    state: object = None
    """What the deed goes by, of those that would else look once more."""

    @property
    def based_on(self) -> str:
        """Return the basis as a short text."""
        return hashlib.sha256(repr(self.basis).encode()).hexdigest()[:16]
