"""Limits on the rate of new connections (KIP-612).

Rules of this file:

* **Next to nothing is read of a connection that waits**, and it has no Connection object and no
  TLS. Apache Kafka does not accept it meanwhile; clients cannot distinguish the two.
* **Beyond the rate of the broker or of a listener it waits for its turn.** A connection whose turn
  would come later than clients wait is closed at once.
* **Beyond the rate of its address it is held and then closed**, as with Apache Kafka: that slows
  down a client that reconnects at once. At most HELD_MAX are held; more are closed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from barnabas.broker.config.addresses import address_text, plain_host, without_zone
from barnabas.broker.config.types import INT_MAX
from barnabas.broker.security.quotas.quota_rates import Rate

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.runtime.clock import Clock, Timer
    from barnabas.broker.security.quotas.quotas import Quotas

WAIT_MAX_S: Final = 30.0
"""Maximum time a connection waits for its turn: by default clients wait no longer."""
HOLD_MAX_S: Final = 1.0
"""Maximum time for which a connection is held before it is closed."""
HELD_MAX: Final = 1000
EARLY_BYTES: Final = 256
"""Bytes that are read from a waiting connection, no more than the buffers of a served one hold."""
ADDRESSES_MAX: Final = 10_000
"""Maximum number of addresses whose rate is remembered; beyond it the oldest one is dropped."""
RATE_KEY: Final = "max.connection.creation.rate"


class Verdict(NamedTuple):
    """Verdict about a new connection: after ``wait_s`` seconds it is served, or closed."""

    wait_s: float = 0.0
    refused: str = ""
    """The reason to close it, or ""."""


AT_ONCE: Final = Verdict()


class ConnectionRates:
    """Rates of new connections, and their limits."""

    def __init__(self, clock: Clock, quotas: Quotas, config: BrokerConfig) -> None:
        self._clock = clock
        self._quotas = quotas
        self._broker = Rate(quotas.windows)
        self._listeners: dict[str, Rate] = {}
        self._addresses: dict[str, Rate] = {}
        self._broker_limit = INT_MAX
        self._listener_limits: dict[str, int] = {}
        self.configure(config)

    def configure(self, config: BrokerConfig) -> None:
        """Use the limits of a configuration from now on."""
        self._broker_limit = config.max_connection_creation_rate
        self._listener_limits = {}
        for endpoint in config.endpoints:
            listener = config.for_listener(endpoint.name)
            if listener.name_of(RATE_KEY) is not None:
                self._listener_limits[endpoint.name] = cast("int", listener.value(RATE_KEY))

    def __bool__(self) -> bool:
        """Whether there is any limit."""
        return bool(
            self._broker_limit != INT_MAX or self._listener_limits or self._quotas.limits.addresses
        )

    def judge(self, listener: str, host: str) -> Verdict:
        """Count a new connection."""
        now_s = self._clock.monotonic()
        waits = [
            self._wait_s(self._broker, self._broker_limit, now_s),
            self._wait_s(
                self._listeners.setdefault(listener, Rate(self._quotas.windows)),
                self._listener_limits.get(listener, INT_MAX),
                now_s,
            ),
        ]
        wait_s = max(waits)
        if wait_s > WAIT_MAX_S:
            self._broker.add(-1, now_s)
            self._listeners[listener].add(-1, now_s)
            return Verdict(0.0, f"{RATE_KEY}: its turn would come in {wait_s:.0f} s")
        return self._judge_address(host, now_s) or Verdict(wait_s)

    def _judge_address(self, host: str, now_s: float) -> Verdict | None:
        limit = self._quotas.limits.of_address(without_zone(host))
        if limit is None:
            return None
        rate = self._addresses.get(host)
        if rate is None:
            if len(self._addresses) >= ADDRESSES_MAX:
                del self._addresses[next(iter(self._addresses))]
            rate = self._addresses[host] = Rate(self._quotas.windows)
        wait_s = self._wait_s(rate, limit, now_s)
        if not wait_s:
            return None
        rate.add(-1, now_s)  # What is closed does not count.
        return Verdict(min(wait_s, HOLD_MAX_S), f"connection_creation_rate of {limit:g} reached")

    @staticmethod
    def _wait_s(rate: Rate, limit: float, now_s: float) -> float:
        rate.add(1, now_s)
        if limit == INT_MAX:
            return 0.0
        return rate.throttle_s(limit, now_s) if limit > 0 else WAIT_MAX_S * 2


class Host(Protocol):
    """The owner of a doorman."""

    def held(self, doorman: Doorman) -> bool:
        """Keep a connection until it is released; False if there are too many."""

    def released(self, doorman: Doorman) -> None:
        """Remove a connection."""

    def refused(self, text: str) -> None:
        """Count a connection that will be closed, and log it, within limits."""


class Doorman(asyncio.BufferedProtocol):
    """Protocol of a connection that has to wait before it is served."""

    __slots__ = (
        "_clock",
        "_early",
        "_host",
        "_judge",
        "_new_protocol",
        "_room",
        "_timer",
        "_transport",
        "_verdict",
    )

    def __init__(
        self,
        host: Host,
        clock: Clock,
        judge: Callable[[str], Verdict],
        new_protocol: Callable[[], asyncio.BufferedProtocol],
    ) -> None:
        """``judge`` gets the client's address; ``new_protocol`` returns the protocol of an admitted
        connection.
        """
        self._host = host
        self._clock = clock
        self._judge = judge
        self._new_protocol = new_protocol
        self._timer: Timer | None = None
        self._transport: asyncio.Transport
        self._verdict = AT_ONCE
        self._room: memoryview | None = None
        self._early = memoryview(b"")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Serve the connection, or delay it."""
        self._transport = cast("asyncio.Transport", transport)
        address = transport.get_extra_info("peername") or ("?", 0)
        peer_host = plain_host(str(address[0]))
        self._verdict = verdict = self._judge(peer_host)
        if verdict.refused:
            peer = address_text(peer_host, address[1])
            self._host.refused(f"connection refused: peer={peer} reason={verdict.refused}")
        if not verdict.wait_s:
            self._serve_or_close()
        elif self._host.held(self):
            self._timer = self._clock.call_later(verdict.wait_s * 1000, self._waited)
        else:
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return a small buffer: a transport always starts to read."""
        if self._room is None:
            self._room = memoryview(bytearray(EARLY_BYTES))
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Stop reading from the client."""
        self._transport.pause_reading()
        if self._room is not None:
            self._early = self._room[:nbytes]

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        """Stop waiting: the connection is lost."""
        self._end()

    def abort(self) -> None:
        """Close the connection at once."""
        self._end()
        self._transport.abort()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._host.released(self)

    def _waited(self) -> None:
        self._timer = None
        self._host.released(self)
        self._serve_or_close()

    def _serve_or_close(self) -> None:
        transport = self._transport
        if self._verdict.refused:
            transport.abort()
            return
        protocol = self._new_protocol()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._early and not transport.is_closing():
            transport.resume_reading()
            room = memoryview(protocol.get_buffer(len(self._early)))
            room[: len(self._early)] = self._early
            protocol.buffer_updated(len(self._early))
