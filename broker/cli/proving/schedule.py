"""Schedule of the faults of a run, drawn from its seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from barnabas.broker.cli.proving.faults import Fault, Planned

KILL, PAUSE, ZOMBIE, JOIN, BROKER = "kill", "pause", "zombie", "join", "broker"

KINDS: Final = {
    KILL: "kill -9 of an instance, which is started again",
    PAUSE: "an instance that stands still for a while",
    ZOMBIE: "an instance that stands still while its successor works, and wakes up after it",
    JOIN: "another instance that joins and leaves",
    BROKER: "kill -9 of the broker, which is started again",
}
"""Faults by name, each with its meaning."""
OF_THE_BROKER: Final = frozenset({BROKER})
"""Faults of the broker: only one that the command has started can have them."""

_WEIGHTS: Final = {KILL: 5, PAUSE: 2, ZOMBIE: 3, JOIN: 2, BROKER: 2}
_FIRST_S: Final = 0.3
_REST_S: Final = (0.3, 1.8)
"""Time between the starts of two faults."""
_HEAL_S: Final = {
    KILL: (0.0, 0.6),
    PAUSE: (0.3, 3.0),
    ZOMBIE: (0.8, 4.0),
    JOIN: (1.0, 4.0),
    BROKER: (0.0, 0.8),
}
"""Times until a fault is healed."""
_QUIET_SHARE: Final = 0.1
"""Share of the time, at its end, without a new fault."""


def draw(seed: int, seconds: float, kinds: Sequence[str], instances: int) -> list[Planned]:
    """Return the faults of a run, in the order of their times.

    Instances are numbered from 1; the instance that joins has the number after the last one.
    """
    chance = Random(f"{seed} faults")  # noqa: S311
    chosen = [each for each in KINDS if each in kinds]
    found: list[Planned] = []
    at_s = _FIRST_S
    while chosen and at_s < seconds * (1 - _QUIET_SHARE):
        (kind,) = chance.choices(chosen, [_WEIGHTS[each] for each in chosen])
        slot = 0 if kind in OF_THE_BROKER else chance.randint(1, instances)
        if kind == JOIN:
            slot = instances + 1
        heal_s = round(min(chance.uniform(*_HEAL_S[kind]), seconds - at_s), 3)
        found.append(Planned(round(at_s, 3), Fault(kind, heal_s, client=str(slot) if slot else "")))
        at_s += chance.uniform(*_REST_S)
    return found
