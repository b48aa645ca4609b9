"""The HTTP port as a server: connections, and how many of them there may be.

It runs on the broker's loop, so an answer from ``/livez`` is itself the proof that the loop turns.
It is the first thing to open and the last to close: a port that is taken shows before recovery, and
``/readyz`` says what a start or a stop is waiting for.

Rules of this file:

* **A probe always gets in.** Connections that wait for a request, those of probes, those whose
  answer does not end and those of all other pages are limited apart
  (broker/http/connection_slots.py), and the newest is admitted: neither questions that never end
  nor readers that never read, nor tabs of a browser, keep one out.
* **What is short is answered where the request ends**, without a task or another turn of the loop.
  A long answer goes piece by piece, no faster than it is read, and one piece of all long answers
  is made in a turn of the loop: many who ask at once wait for each other, not Kafka's clients.
* **All answers share one budget in bytes** (broker/http/messages/answer_memory.py) until they are
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
"""Connections at a time that are being answered."""
SHORT_PATHS: Final = PROBES | {METRICS}
PROBES_MAX: Final = 8
"""Connections at a time that are answered what probes and Prometheus ask."""
STREAMS_MAX: Final = 16
"""Connections at a time that get an answer without an end."""
BACKLOG: Final = 512
"""Connections that may come in one turn of the loop; the kernel lets one more try in a second."""

Answering: TypeAlias = Callable[[Request, str], Answer | Awaitable[Answer]]
"""Gets a request and the address it came from."""


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
        """``memory`` is the budget of all answers; a new one of the default size if None."""
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
        """Return where the port can be reached once it is open."""
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
        """Close, and wait until nothing is left of it."""
        self.close()
        await self._all_gone.wait()

    # ------------------------------------------------------------------ a Port to its connections

    def opened(self, connection: HttpConnection) -> None:
        """Admit a new connection; the one that has to make room is closed."""
        self._connections.add(connection)
        self._all_gone.clear()
        self._make_room(self._asking.enter(connection, connection.host))

    def asked(self, connection: HttpConnection, request: Request | None) -> None:
        """Move a connection to those that are answered."""
        self._asking.leave(connection)
        is_probe = request is not None and request.path in SHORT_PATHS
        slots = self._probes if is_probe else self._answered
        self._make_room(slots.enter(connection, connection.host))

    def streams(self, connection: HttpConnection) -> None:
        """Move a connection to those whose answer does not end."""
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
        """Return the answer to a request, or what will."""
        return self._answering(request, peer_host)

    def wants_a_turn(self, connection: HttpConnection) -> None:
        """Have the next piece of a long answer made, after those of others."""
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
