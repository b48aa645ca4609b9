"""Brokers of one process that ask each other: over bytes, and over links that a script makes bad.

Everything but the sockets is what a cluster has: ``PeerClient`` with its links and limits, the
codec in all four directions, hellos, the registry of ``broker/peers/sessions.py``, handlers. In
between a script says what happens to each question::

    network = LoopbackNetwork(clock, seed)
    one = network.join(1, session=1, routes=first_broker.routes)
    two = network.join(2, session=1, routes=second_broker.routes)
    network.scripts[1, 2] = Weather(delay_ms=50, lose_answer=0.1, cut=0.1)
    one.ask(2, Purpose.MARKERS, WRITE_TXN_MARKERS, 2, request, on_answer, timeout_ms=1000)

What can happen is what can happen to TCP connections. Of one connection nothing is reordered, and
nothing is missing in the middle: what is lost takes everything behind it along. But a connection
that the one who asks has given up may still deliver what was sent, before or after what is sent on
the next one: that is how questions overtake each other, and how a copy comes late. A question that
is ``duplicated`` comes twice in a row, and only the second is answered, as when somebody repeats it
on the same connection for want of an answer.

Time is the clock's, chance comes from the seed: the same in every run, if nothing else is random.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.api.client_seen import ClientSeen
from barnabas.broker.api.dispatch import CloseConnection, Deferred, RequestContext, Routes
from barnabas.broker.api.peer_without_login import PeerWithoutLogin
from barnabas.broker.api.refusals import refusal
from barnabas.broker.peers.client import PeerClient
from barnabas.broker.peers.connection import Address, Opened, PeerConnection, Refused, introduced
from barnabas.broker.peers.interface import Limits
from barnabas.broker.security.access import OPEN, Access
from barnabas.broker.security.principals import ANONYMOUS
from barnabas.broker.security.session import Session
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.header import API_VERSIONS_KEY, decode_request_header, response_frame

if TYPE_CHECKING:
    from barnabas.broker.peers.sessions import Hello, PeerLink
    from barnabas.broker.runtime.clock import Clock

logger = logging.getLogger("barnabas.broker.testing.loopback")

_LENGTH_BYTES: Final = 4
_HOST: Final = "loopback"


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to one question and its answer; the first that applies of the last four."""

    question_ms: float = 0
    """How long it is on its way; never less than what was sent before on the same connection."""
    answer_ms: float = 0
    lose_question: bool = False
    """It does not arrive, nor does anything behind it; the one who asks hears of that, or not."""
    lose_answer: bool = False
    """It is handled, and its answer and everything behind that are lost."""
    is_heard_of: bool = True
    """Whether whoever asks finds the connection ended after a loss, or waits until it is late."""
    cut: bool = False
    """The one who asks finds the connection ended at once, and it arrives all the same."""
    duplicated: bool = False
    """It arrives twice, one behind the other; the second is answered. Not a hello."""


Script = Callable[[Random], Fate]
"""Draws the fate of the next question of a link, hellos included."""


@dataclass(frozen=True, slots=True)
class Weather:
    """A script by chances, each between 0 and 1."""

    delay_ms: float = 0
    """The longest there is; most are far shorter, so that a late one is overtaken by several."""
    lose_question: float = 0
    lose_answer: float = 0
    cut: float = 0
    duplicated: float = 0

    def __call__(self, chance: Random) -> Fate:
        """Draw; always as many numbers, so that one chance does not move the others."""
        question_ms, answer_ms = (chance.random() ** 4 * self.delay_ms for _ in range(2))
        draws = [chance.random() for _ in range(5)]
        return Fate(
            round(question_ms, 3),
            round(answer_ms, 3),
            lose_question=draws[0] < self.lose_question,
            lose_answer=draws[1] < self.lose_answer,
            is_heard_of=draws[2] < 0.5,
            cut=draws[3] < self.cut,
            duplicated=draws[4] < self.duplicated,
        )


def scripted(*fates: Fate) -> Script:
    """Return a script of these fates, one for each question; then nothing bad happens."""
    left = deque(fates)
    return lambda _chance: left.popleft() if left else Fate()


FAIR: Final = Weather()


class LoopbackNetwork:
    """All brokers, and everything that is on its way between them."""

    def __init__(self, clock: Clock, seed: int) -> None:
        """Call this on the loop. The seed is written to the log."""
        self.clock = clock
        self.seed = seed
        self.loop = asyncio.get_running_loop()
        self.scripts: defaultdict[tuple[int, int], Script] = defaultdict(lambda: FAIR)
        """By who asks and who is asked; may be changed at any time."""
        self.errors: list[BaseException] = []
        """Errors of ours in handlers, which have closed the connection. A test looks at the end."""
        self.in_transit = 0
        """Pieces that are on their way, or wait for the clock."""
        self._chance = Random(seed)  # noqa: S311  chance that can be had again
        self._nodes: dict[int, _Node] = {}
        self._tasks: set[asyncio.Future[Any]] = set()
        logger.info("loopback seed=%d", seed)

    def join(
        self,
        node_id: int,
        *,
        session: int,
        routes: Routes,
        access: Access = OPEN,
        limits: Limits | None = None,
    ) -> PeerClient:
        """Take in a broker, or its next life; return what it asks the others with.

        ``routes`` are bound to its services; ``access`` is what others may do there.
        """
        self._nodes[node_id] = _Node(routes, access)
        given = limits or Limits()
        return PeerClient(
            node_id=node_id,
            session=session,
            address_of=lambda node: (_HOST, node) if node in self._nodes else None,
            transport=_Loopback(self, given),
            clock=self.clock,
            limits=given,
        )

    def leave(self, node_id: int) -> None:
        """End a broker as a crash does: what is on its way to it is lost."""
        node = self._nodes.pop(node_id, None)
        if node is not None:
            for line in list(node.lines):
                line.close("the broker has left")

    def fate(self, asker: int, asked: int) -> Fate:
        """Draw what happens to the next question."""
        return self.scripts[asker, asked](self._chance)

    def node(self, node_id: int) -> _Node | None:
        """Return a broker that is there."""
        return self._nodes.get(node_id)

    def keep(self, task: asyncio.Future[Any]) -> None:
        """Hold on to a task until it is done."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_Piece = tuple[bytes, Fate, bool]
"""A question, what happens to it, and whether its answer is wanted."""


def _key_of(frame: bytes) -> int:
    """Return the api key of a request."""
    return int.from_bytes(frame[_LENGTH_BYTES : _LENGTH_BYTES + 2])


class _Node:
    """A broker, as it is asked."""

    def __init__(self, routes: Routes, access: Access) -> None:
        self.routes = routes
        self.access = access
        self.lines: set[_Line] = set()


class _Direction:
    """One direction of a connection: what is sent arrives in order, each piece after its delay."""

    def __init__(self, network: LoopbackNetwork, deliver: Callable[[Any], None]) -> None:
        self._network = network
        self._deliver = deliver
        self._pieces: deque[Any] = deque()
        self._due_ms = 0.0
        self.is_cut = False
        """Whether nothing that is sent from now on arrives."""

    def send(self, piece: Any, delay_ms: float) -> None:  # noqa: ANN401  bytes, or None: the end
        """Have a piece arrive, behind all those before it."""
        if self.is_cut:
            return
        clock = self._network.clock
        now_ms = clock.monotonic() * 1000
        self._due_ms = max(self._due_ms, now_ms + delay_ms)
        self._network.in_transit += 1
        self._pieces.append(piece)
        if self._due_ms <= now_ms:
            self._network.loop.call_soon(self._arrive)
        else:
            clock.call_later(self._due_ms - now_ms, self._arrive)

    def _arrive(self) -> None:
        self._network.in_transit -= 1
        self._deliver(self._pieces.popleft())


class _Loopback:
    """Makes connections inside of the process: a Transport of PeerClient."""

    def __init__(self, network: LoopbackNetwork, limits: Limits) -> None:
        self._network = network
        self._limits = limits

    async def open(self, address: Address, hello: Hello) -> Opened:
        """Connect, and say hello; raises Refused."""
        node = self._network.node(address[1])
        if node is None:
            raise Refused("nobody is there", is_final=False)
        connection = PeerConnection(f"barnabas-broker-{hello.node_id}", self._limits)
        wire = _Wire(self._network, node, (hello.node_id, address[1]), connection)
        connection.connection_made(wire)
        try:
            return await introduced(connection, hello)
        except OSError as error:
            raise Refused(str(error), is_final=False) from None
        except BaseException:
            connection.abort()
            raise

    def close(self) -> None:
        """Nothing is to be given back."""


class _Wire(asyncio.Transport):
    """The asker's end of a connection, as its transport; the other end is a ``_Line``."""

    def __init__(
        self,
        network: LoopbackNetwork,
        node: _Node,
        link: tuple[int, int],
        connection: PeerConnection,
    ) -> None:
        super().__init__()
        self._network = network
        self._link = link
        self._connection = connection
        self._line = _Line(network, node, self)
        self._there = _Direction(network, self._line.arrived)
        self._back = _Direction(network, self._came)
        self._is_open = True

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Send one question, and draw what happens to it."""
        frame = b"".join(bytes(each) for each in list_of_data)
        fate = self._network.fate(*self._link)
        if fate.lose_question:
            self._there.is_cut = True
            self._hear_of(fate)
            return
        if fate.lose_answer:
            self._hear_of(fate)
        if fate.duplicated and _key_of(frame) != API_VERSIONS_KEY:
            self._there.send((frame, fate, False), fate.question_ms)
        self._there.send((frame, fate, True), fate.question_ms)
        if fate.cut and not fate.lose_answer:
            self._network.loop.call_soon(self._lost)

    def answer(self, frame: bytes, fate: Fate) -> None:
        """Carry an answer back; the peer calls this."""
        if fate.lose_answer:
            self._back.is_cut = True
        self._back.send(frame, fate.answer_ms)

    def hung_up(self) -> None:
        """Carry back that the peer has closed the connection."""
        self._back.send(None, 0)

    def abort(self) -> None:
        """Give up: what was sent still arrives, then the peer hears of it."""
        if self._is_open:
            self._is_open = False
            self._there.send(None, 0)

    def _hear_of(self, fate: Fate) -> None:
        """Find the connection ended after a while, or never."""
        if fate.is_heard_of:
            self._network.clock.call_later(fate.question_ms + fate.answer_ms, self._lost)

    def _came(self, frame: bytes | None) -> None:
        if not self._is_open:
            return
        if frame is None:
            self._lost()
        else:
            self._connection.data_received(frame)

    def _lost(self) -> None:
        if self._is_open:
            self._connection.connection_lost(ConnectionResetError("the link has failed"))


class _Line(PeerWithoutLogin):
    """The peer's end of a connection: a Peer to handlers, and a sink of what they defer."""

    def __init__(self, network: LoopbackNetwork, node: _Node, wire: _Wire) -> None:
        self.session = Session(ANONYMOUS, node.access)
        self.link: PeerLink | None = None
        self.endpoint = (_HOST, 0)
        self.listener_name = _HOST
        self.peer_host = _HOST
        self.frame_is_owned = True
        self.seen = ClientSeen()
        self._network = network
        self._node = node
        self._wire = wire
        self._is_open = True
        self._is_busy = False
        self._received: deque[_Piece] = deque()
        self._owed: deque[_Owed] = deque()
        node.lines.add(self)

    # ------------------------------------------------------------------------ what comes and goes

    def arrived(self, piece: _Piece | None) -> None:
        """Take a question, or that the one who asks has gone."""
        if not self._is_open:
            return
        if piece is None:
            self._end()
            return
        self._received.append(piece)
        self._handle_next()

    def close(self, reason: str) -> None:
        """Hang up."""
        if self._is_open:
            logger.debug("loopback connection closed: %s", reason)
            self._end()
            self._wire.hung_up()

    def bug(self, name: str, error: BaseException) -> None:
        """Hang up because of an error of ours."""
        self._network.errors.append(error)
        self.close(f"api={name} error={error!r}")

    def answered(self, deferred: Deferred[Any]) -> None:
        """Send what is ready, in the order of the questions."""
        for owed in self._owed:
            if owed.deferred is deferred:
                owed.response = deferred.response
        self._send_ready()
        if deferred.parked:
            self._is_busy = False
            self._handle_next()

    def _end(self) -> None:
        self._is_open = False
        self._node.lines.discard(self)
        self._received.clear()
        if self.link is not None:
            self.link.gone()
        owed, self._owed = self._owed, deque()
        for each in owed:
            if each.deferred is not None:
                each.deferred.connection = None
                each.deferred.abandoned()

    # --------------------------------------------------------------------------------- questions

    def _handle_next(self) -> None:
        """Handle what has arrived, one question at a time, until one has to be waited for."""
        while self._received and not self._is_busy and self._is_open:
            piece = self._received.popleft()
            try:
                self._handle(*piece)
            except CloseConnection as error:
                self.close(str(error))
            except Exception as error:  # noqa: BLE001  the top frame, as a connection's
                self.bug("?", error)

    def _handle(self, frame: bytes, fate: Fate, is_wanted: bool) -> None:  # noqa: FBT001
        view = memoryview(frame)[_LENGTH_BYTES:]
        header, position = decode_request_header(view)
        key, version = header.api_key, header.api_version
        route = self._node.routes.get(key)
        if route is None or not route.min_version <= version <= route.max_version:
            raise CloseConnection(f"api {key} version {version} is not served")
        request = route.api.decode_request(view, position, version)
        context = RequestContext(self, key, version, header.client_id, self._node.access)
        encode = partial(_encoded, route.api, version, header.correlation_id)
        owed = _Owed(encode, fate, is_wanted)
        self._owed.append(owed)
        try:
            response = route.handler(context, request)
        except KafkaError as error:
            response = refusal(route, request, error)
        else:
            if route.is_coroutine:
                self._is_busy = True
                task = asyncio.ensure_future(self._run(response, route, request, owed))
                self._network.keep(task)
                return
        if isinstance(response, Deferred) and response.response is None:
            response.route = route
            response.version = version
            response.connection = self
            owed.deferred = response
            self._is_busy = response.parked
            return
        owed.response = response.response if isinstance(response, Deferred) else response
        self._send_ready()

    async def _run(self, coroutine: Awaitable[Any], route: Any, request: Any, owed: _Owed) -> None:  # noqa: ANN401
        try:
            try:
                owed.response = await coroutine
            except KafkaError as error:
                owed.response = refusal(route, request, error)
        except CloseConnection as error:
            self.close(str(error))
        except Exception as error:  # noqa: BLE001  the top frame, as a connection's
            self.bug(route.name, error)
        finally:
            self._is_busy = False
        self._send_ready()
        self._handle_next()

    def _send_ready(self) -> None:
        while self._is_open and self._owed and self._owed[0].response is not None:
            owed = self._owed.popleft()
            if owed.is_wanted:
                self._wire.answer(owed.encode(owed.response), owed.fate)


@dataclass(slots=True)
class _Owed:
    """An answer that is due."""

    encode: Callable[[Any], bytes]
    fate: Fate
    is_wanted: bool
    response: Any = None
    deferred: Deferred[Any] | None = None


def _encoded(api: Any, version: int, correlation_id: int, response: Any) -> bytes:  # noqa: ANN401
    return b"".join(map(bytes, response_frame(api, version, correlation_id, response)))
