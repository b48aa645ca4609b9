"""Server of the HTTP port: its connections, and their limits.

It runs on the broker's loop, so a response from ``/livez`` proves that the loop runs. It opens
first and closes last: a port in use is found before recovery, and ``/readyz`` reports the progress
of a start or a stop.

Rules of this file:

* **A probe is always admitted.** Idle connections, probes, streams and all other pages have limits
  of their own (broker/http/connection_slots.py), and the newest connection is admitted. So neither
  unfinished requests nor clients that do not read, nor browser tabs, keep a probe out.
* **A short response is built where the request ends**, without a task or another turn of the loop.
  A long one is built in pieces, no faster than it is read, and one piece of all long responses is
  built in a turn of the loop: many HTTP clients delay each other, not the clients of Kafka.
* **All responses share one budget in bytes** (broker/http/messages/answer_memory.py) until they are
  read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from barnabas.broker.config.addresses import address_text
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.http.connection import HttpConnection
from barnabas.broker.http.connection_slots import ConnectionSlots
from barnabas.broker.http.messages.answer import Answer
from barnabas.broker.http.messages.answer_memory import AnswerMemory
from barnabas.broker.http.messages.request import Request
from barnabas.broker.network.socket_server import Listener, bind
from barnabas.broker.runtime.clock import Clock
from barnabas.broker.security.web.guard import METRICS, PROBES

logger = logging.getLogger("barnabas.broker.http")

ASKING_MAX: Final = 64
"""Connections at a time that wait for a request, or for the rest of it."""
ANSWERED_MAX: Final = 24
"""Maximum number of connections with a response in progress."""
SHORT_PATHS: Final = PROBES | {METRICS}
PROBES_MAX: Final = 8
"""Maximum number of connections with a response for probes and Prometheus in progress."""
STREAMS_MAX: Final = 16
"""Connections at a time that get a response without an end."""
BACKLOG: Final = 512
"""Connections that may come in one turn of the loop; the kernel lets one more try in a second."""

Answering: TypeAlias = Callable[[Request, str], Answer | Awaitable[Answer]]
"""Function that gets a request and the address of its client."""


class HttpServer:
    """Answers requests on one address."""

    def __init__(
        self,
        host: str,
        port: int,
        answering: Answering,
        clock: Clock,
        memory: AnswerMemory | None = None,
    ) -> None:
        """``memory`` is the budget of all responses; a new one of the default size if None."""
        self.clock = clock
        self.memory = AnswerMemory() if memory is None else memory
        self._asking: ConnectionSlots[HttpConnection] = ConnectionSlots(ASKING_MAX)
        self._answered: ConnectionSlots[HttpConnection] = ConnectionSlots(ANSWERED_MAX)
        self._probes: ConnectionSlots[HttpConnection] = ConnectionSlots(PROBES_MAX)
        self._streams: ConnectionSlots[HttpConnection] = ConnectionSlots(STREAMS_MAX)
        self._connections: set[HttpConnection] = set()
        self._next_pieces: deque[HttpConnection] = deque()
        self._all_gone = asyncio.Event()
        self._all_gone.set()
        self._listener = Listener("http", host, port, None)
        self._answering = answering

    @property
    def address(self) -> tuple[str, int]:
        """Address at which the port can be reached once it is open."""
        return self._listener.bound

    async def start(self, config: BrokerConfig) -> None:
        """Listen; raises ListenError."""
        listener = self._listener
        loop = asyncio.get_running_loop()
        for sock in bind(listener, config):
            server = await loop.create_server(
                lambda: HttpConnection(self), sock=sock, backlog=BACKLOG
            )
            listener.servers.append(server)
        logger.info("http listens address=%s", address_text(*self.address))

    def close(self) -> None:
        """Close the port and every connection at once."""
        for server in self._listener.servers:
            server.close()
        self._listener.servers.clear()
        for connection in list(self._connections):
            connection.abort()

    async def stop(self) -> None:
        """Close the port, and wait for its connections to end."""
        self.close()
        await self._all_gone.wait()

    # ------------------------------------------------------------------ a Port to its connections

    def opened(self, connection: HttpConnection) -> None:
        """Admit a new connection; the one that has to make room is closed."""
        self._connections.add(connection)
        self._all_gone.clear()
        self._make_room(self._asking.enter(connection, connection.host))

    def request_received(self, connection: HttpConnection, request: Request | None) -> None:
        """Move a connection to those with a response in progress."""
        self._asking.leave(connection)
        is_probe = request is not None and request.path in SHORT_PATHS
        slots = self._probes if is_probe else self._answered
        self._make_room(slots.enter(connection, connection.host))

    def streams(self, connection: HttpConnection) -> None:
        """Move a connection to those whose response does not end."""
        self._answered.leave(connection)
        self._make_room(self._streams.enter(connection, connection.host))

    def answered(self, connection: HttpConnection) -> None:
        """Move a connection back to those that wait for a request."""
        self._answered.leave(connection)
        self._probes.leave(connection)
        self._make_room(self._asking.enter(connection, connection.host))

    def closed(self, connection: HttpConnection) -> None:
        """Forget a connection."""
        for slots in (self._asking, self._answered, self._probes, self._streams):
            slots.leave(connection)
        self._connections.discard(connection)
        if not self._connections:
            self._all_gone.set()

    def answer(self, request: Request, peer_host: str) -> Answer | Awaitable[Answer]:
        """Return the response to a request, or an awaitable of it."""
        return self._answering(request, peer_host)

    def wants_a_turn(self, connection: HttpConnection) -> None:
        """Schedule the next piece of a long response, after those of other connections."""
        self._next_pieces.append(connection)
        if len(self._next_pieces) == 1:
            asyncio.get_running_loop().call_soon(self._make_a_piece)

    def _make_a_piece(self) -> None:
        connection = self._next_pieces[0]
        connection.send_piece()
        self._next_pieces.popleft()
        if self._next_pieces:
            asyncio.get_running_loop().call_soon(self._make_a_piece)

    @staticmethod
    def _make_room(displaced: HttpConnection | None) -> None:
        if displaced is not None:
            displaced.abort()
