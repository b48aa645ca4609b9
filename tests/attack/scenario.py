"""A scenario is data: a name, an attack, and what it may cost the others.

The attack of a ``Scenario`` runs beside a good neighbour on a broker with default settings; that of
a ``DirectoryScenario`` starts, stops and damages brokers itself, see workshop.py.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tests.attack.peer import Peer, Wire
from tests.attack.process import AttackedBroker
from tests.attack.workshop import Workshop
from tests.counterparts.broker_process import HOST

MIB = 1 << 20

Sent = collections.Counter[str]
"""The number of requests that an attack sent, by kind."""


@dataclass(frozen=True)
class Limits:
    """Limits on the cost of an attack, generous enough for a crowded machine: not timings."""

    neighbour_s: float = 5.0
    """The longest that a Produce or Fetch of the neighbour may take."""
    livez_s: float = 3.0
    """Maximum time of ``/livez``: a blocked loop delays it."""
    loop_held_ms: float = 250.0
    """The longest that the loop may work in one turn, in CPU time, which no crowd stretches."""
    peak_bytes: int = 400 * MIB
    """Resident memory at its highest, above what it was before."""
    left_bytes: int = 64 * MIB
    """Resident memory that may stay when the attacker has gone."""
    descriptors_left: int = 8
    """Open files that may stay."""
    settle_s: float = 30.0
    """Maximum time until memory and files are back at their level."""


class Target:
    """The input of an attack: the broker, random numbers, and a list for its findings."""

    def __init__(self, broker: AttackedBroker, rng: random.Random) -> None:
        self.broker = broker
        self.rng = rng
        self.violations: list[str] = []

    async def connect(self, *, receive_buffer_bytes: int = 0) -> Peer:
        """A raw connection to the broker's listener."""
        return await Peer.connect(HOST, self.broker.port, receive_buffer_bytes=receive_buffer_bytes)

    async def connect_http(self, *, receive_buffer_bytes: int = 0) -> Peer:
        """A raw connection to its HTTP port."""
        port = self.broker.http_port
        return await Peer.connect(HOST, port, receive_buffer_bytes=receive_buffer_bytes)

    async def wire(self, client_id: str = "attack") -> Wire:
        """A connection that speaks the protocol."""
        return await Wire.connect(HOST, self.broker.port, client_id=client_id)

    def expect(self, condition: object, text: str) -> None:
        """Note what was wrong."""
        if not condition:
            self.violations.append(text)


@dataclass(frozen=True)
class Scenario:
    """An attack on a running broker."""

    name: str
    attack: Callable[[Target, int, float], Awaitable[Sent]]
    """A function of target, seed and seconds; it runs for that time, or longer to complete
    a round."""
    limits: Limits = Limits()
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the broker, by Kafka's names; empty if the defaults can be attacked."""
    tls: bool = False
    """Whether there is a listener with TLS, and the one for logins has it, too."""
    rsa_bits: int = 0
    """The size of that listener's RSA key; 0 for one on the curve P-256."""
    weight: float = 1.0
    """The share of the scenario in a long run."""


@dataclass(frozen=True)
class DirectoryScenario:
    """An attack on what a broker has written, or on the files under it while it writes."""

    name: str
    attack: Callable[[Workshop, int, float], Sent]
    weight: float = 1.0
