"""Client of the other brokers: one link for each node and purpose, created when it is needed.

Its creator supplies the session, which no earlier process of a broker may have had, and the
brokers' addresses. The number in a hello counts the connections of the whole session. So it rises
for each node and purpose, even after a link was dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.broker.cluster.peers.connection import Address, Opened, Transport
from barnabas.broker.cluster.peers.interface import Failure, Limits, NoAnswer, Purpose
from barnabas.broker.cluster.peers.link import Link
from barnabas.broker.cluster.peers.question import Question
from barnabas.broker.cluster.peers.sessions import Hello

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock
    from barnabas.protocol.api import Api

Request = TypeVar("Request")
Response = TypeVar("Response")


class PeerClient:
    """``Peers`` over the connections of a transport."""

    def __init__(
        self,
        *,
        node_id: int,
        session: int,
        address_of: Callable[[int], Address | None],
        transport: Transport,
        clock: Clock,
        limits: Limits | None = None,
    ) -> None:
        """``address_of`` returns a node's address, or None if unknown.

        Call this on the event loop.
        """
        self._node_id = node_id
        self._session = session
        self._address_of = address_of
        self._transport = transport
        self._clock = clock
        self._limits = limits or Limits()
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self._links: dict[tuple[int, Purpose], Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def ask(
        self,
        node_id: int,
        purpose: Purpose,
        api: Api[Request, Response],
        version: int,
        request: Request,
        on_answer: Callable[[Response | NoAnswer], None],
        *,
        timeout_ms: float,
    ) -> None:
        """Send a request to a broker; see ``Peers``."""
        question = Question(api, version, request, on_answer, self._loop)
        if self._closed:
            question.fail(Failure.CLOSED, "this broker asks nothing any more")
            return
        address = self._address_of(node_id)
        if address is None:
            self.forget(node_id)
            question.fail(Failure.UNKNOWN_NODE, f"broker {node_id} is not known")
            return
        link = self._links.get((node_id, purpose))
        if link is None:
            open_to = partial(self._open, purpose)
            name = f"broker {node_id} for {purpose}"
            link = Link(name, open_to, self._spawn, self._clock, self._limits)
            self._links[node_id, purpose] = link
        link.ask(question, address, timeout_ms)

    def forget(self, node_id: int) -> None:
        """Close the connections to a broker that has left; see ``Peers``."""
        for purpose in Purpose:
            link = self._links.pop((node_id, purpose), None)
            if link is not None:
                link.close(Failure.UNKNOWN_NODE, f"broker {node_id} has left")

    async def close(self) -> None:
        """Fail pending and later requests; see ``Peers``."""
        self._closed = True
        links, self._links = self._links, {}
        for link in links.values():
            link.close(Failure.CLOSED, "this broker asks nothing any more")
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._transport.close()
        await self._clock.sleep(0)  # Scheduled callbacks run before this returns.

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _open(self, purpose: Purpose, address: Address) -> Opened:
        hello = Hello(self._node_id, self._session, purpose.value, next(self._numbers))
        return await self._transport.open(address, hello)
