"""Schedule of the faults of a run, drawn from its seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from barnabas.broker.cli.proving.faults import Fault, Planned

KILL, PAUSE, ZOMBIE, JOIN, BROKER = "kill", "pause", "zombie", "join", "broker"
CUT_BEFORE, CUT_AFTER, SLOW, LOADING = "cut-before", "cut-after", "slow", "loading"

KINDS: Final = {
    KILL: "kill -9 of an instance, which is started again",
    PAUSE: "an instance that is paused for a while",
    ZOMBIE: "an instance that is paused until its successor has taken over, and then resumed",
    JOIN: "another instance that joins and leaves",
    BROKER: "kill -9 of the broker, which is started again",
    CUT_BEFORE: "a connection is closed before the request takes effect",
    CUT_AFTER: "a connection is closed after the request took effect, without a response",
    SLOW: "a transaction that takes longer than its timeout, so that its coordinator aborts it",
    LOADING: "a coordinator that loads its state",
}
"""Faults by name, each with its meaning."""
OF_THE_BROKER: Final = frozenset({BROKER})
"""Faults that need a broker of the command's own."""
BEFORE, AFTER, AT = "before", "after", "at"
"""Values of ``how`` for a fault at a request of the program, which ``share`` chooses."""
EXPIRES: Final = "session expires"
"""Value of ``how`` for a pause that is longer than the session timeout."""

_WEIGHTS: Final = {
    KILL: 9,
    PAUSE: 2,
    ZOMBIE: 3,
    JOIN: 2,
    BROKER: 2,
    CUT_BEFORE: 1,
    CUT_AFTER: 3,
    SLOW: 1,
    LOADING: 1,
}
_AT_A_REQUEST: Final = 0.8
"""Share of the kills and of the zombies that happen at a chosen request."""
_EXPIRES: Final = 0.5
"""Share of the pauses that outlast the session timeout."""
_FIRST_S: Final = 0.3
_REST_S: Final = (0.3, 1.5)
"""Time between the starts of two faults."""
_HEAL_S: Final = {
    KILL: (0.2, 1.0),
    PAUSE: (0.3, 3.0),
    ZOMBIE: (0.5, 2.0),
    JOIN: (1.0, 4.0),
    BROKER: (0.0, 0.8),
    CUT_BEFORE: (0.5, 1.0),
    CUT_AFTER: (0.5, 1.0),
    SLOW: (0.2, 0.6),
    LOADING: (0.2, 1.0),
}
"""Times until a fault is healed, beside the time for its request."""
REQUEST_S: Final = 2.0
"""Time to wait for the request at which a fault happens: a busy machine needs it."""
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
        slot = chance.randint(1, instances)
        if kind in {BROKER, JOIN}:
            slot = 0 if kind == BROKER else instances + 1
        how = _manner(kind, chance)
        heal_s = chance.uniform(*_HEAL_S[kind])
        if kind in {CUT_BEFORE, CUT_AFTER} or (kind == KILL and how):
            heal_s += REQUEST_S
        heal_s = round(min(heal_s, seconds - at_s), 3)
        client, share = str(slot) if slot else "", round(chance.random(), 3)
        fault = Fault(kind, heal_s, client=client, share=share, how=how)
        found.append(Planned(round(at_s, 3), fault))
        at_s += chance.uniform(*_REST_S)
    return found


def _manner(kind: str, chance: Random) -> str:
    """Draw what a fault needs beside its time: whether and how it happens at a request."""
    when = chance.choice((BEFORE, AFTER))
    is_at_a_request, expires = chance.random() < _AT_A_REQUEST, chance.random() < _EXPIRES
    if kind == PAUSE:
        return EXPIRES if expires else ""
    if kind in {ZOMBIE, SLOW}:
        return AT if is_at_a_request else ""
    return when if kind == KILL and is_at_a_request else ""
