"""Effect of an action, as shown before and after it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.broker.console.shapes import Wide

OLD_FIGURES: Final = {"acls": "rules", "offsets_blocked": "offsets_held_back", "quotas": "limits"}
"""Former names of figures, which programs of users may read: an effect has both."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changes."""

    what: str
    before: str | None
    after: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of an action, done or previewed."""

    as_of: Wide
    action: str
    resource: str
    dry_run: bool
    """Whether this is a preview only."""
    based_on: str
    """State of the resource, to send along with an irreversible action."""
    summary: str
    figures: dict[str, Wide]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Effect that an action would have, and the state that it is based on."""

    summary: str
    figures: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    basis: tuple[object, ...] = ()
    """State that must not change between preview and action."""
    state: object = None
    """Data that the action reuses from the preview."""

    @property
    def based_on(self) -> str:
        """Return a short text of the state that a preview was made from."""
        return hashlib.sha256(repr(self.basis).encode()).hexdigest()[:16]


def with_old_names(figures: Mapping[str, int]) -> dict[str, Wide]:
    """Return figures with their old names beside the present ones."""
    old = {OLD_FIGURES[name]: value for name, value in figures.items() if name in OLD_FIGURES}
    return {**figures, **old}
