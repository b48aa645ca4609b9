"""The requests of one connection: frames in, responses in their order, reasons to pause.

Nothing here receives, sends or waits: a connection (connection.py) puts bytes into the frames,
calls ``process``, and writes what is in ``out``.

Rules of this file:

* **The pipeline awaits nothing and creates no Task or Future** for a request. A handler that waits
  is a ``Run`` (``broker/api/driver.py``); the pipeline starts it, and its event resumes it.
* **Responses leave in request order.** ``_due`` has a list of chunks for a ready response and a
  Deferred for any other. Nothing is put into ``out`` while an older response is missing.
* **The pipeline slows a client down by not handling its requests.** Each reason is a bit of
  ``pauses``; frames stay in the buffer, and the socket is not read once that is full. The peer
  sees TCP back-pressure. The pipeline resumes when the last bit is cleared.
* **Completing a response never runs another handler.** It queues the connection for delivery, so a
  handler that completes a hundred waiting fetches is not interrupted by the requests after them.
  All responses of one loop iteration leave a connection in one write.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.broker.api.dispatch import (
    API_VERSIONS_KEY,
    FETCH_KEY,
    PRODUCE_KEY,
    CloseConnection,
    Deferred,
    RequestContext,
    Route,
    Shortcut,
    Usage,
)
from barnabas.broker.api.division import is_long
from barnabas.broker.api.driver import Encoded, Run
from barnabas.broker.api.refusals import refusal
from barnabas.broker.network.framing import (
    Chunks,
    answers_flexibly,
    encoded,
    range_answer,
    skip_header_tags,
)
from barnabas.broker.network.large import LONG_ELEMENTS
from barnabas.broker.network.pauses import (
    BACKLOGGED,
    CLOSED,
    DRAINING,
    HANDLING,
    PIPELINED,
    THROTTLED,
)
from barnabas.broker.network.throttling import Mute, throttle_of
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.header import decode_request_header
from barnabas.storage.runtime.clock import counter_ns

if TYPE_CHECKING:
    from barnabas.broker.network.intake import Intake
    from barnabas.broker.network.line import Limits, Line

Plan: TypeAlias = tuple[Route, RequestContext, int, bool, bool, Any, Any, Any, Shortcut | None]

# Key and version in one, correlation id, client id.
_request_header: Final = Struct(">iih").unpack_from
HEADER_BYTES: Final = 10

WRITE_BYTES: Final = 256 * 1024
"""The size of ready responses at which they are written, so that the responses to a burst of
requests cannot accumulate behind the transport's flow control."""

TURN_REQUESTS: Final = 200
"""Requests of one connection handled in a row: about 2 ms. A full ring of the smallest requests
would delay all other connections for 30 ms, and the disk, which starts when the turn ends."""

TURN_NS: Final = 5_000_000
"""The maximum time of one connection's requests in a row, for requests that are not small."""


class Pipeline:
    """The requests and pending responses of one connection; see the rules of this file."""

    __slots__ = (
        "_at_work",
        "_backlog",
        "_client",
        "_due",
        "_frame",
        "_frames",
        "_generation",
        "_intake",
        "_large",
        "_limit",
        "_limits",
        "_line",
        "_mute",
        "_parked",
        "_plans",
        "_queued_bytes",
        "_repeated",
        "_routes",
        "_seen",
        "last_ns",
        "last_route",
        "out",
        "out_bytes",
        "pauses",
        "refusals",
        "requests",
    )

    def __init__(self, line: Line, intake: Intake, limits: Limits) -> None:
        self._line: Line | None = line
        self._intake = intake
        self._frames = intake.frames
        self._limits = limits
        self._limit = limits.pipeline_limit
        self._routes = limits.routes
        self._large = limits.large
        self._backlog = limits.backlog
        self._at_work = limits.at_work
        self._generation = limits.generation
        self._seen = self._generation.number
        self._plans: dict[int, Plan] = {}
        self._client: bytes | None = None
        self._repeated: tuple[Route, Shortcut] | None = None
        self._due: deque[Chunks | Deferred[Any]] = deque()
        self._queued_bytes = 0
        self._parked: Deferred[Any] | None = None
        self._frame: memoryview | None = None
        self._mute: Mute | None = None
        self.out: Chunks = []
        """Answers whose turn has come, to be written."""
        self.out_bytes = 0
        self.pauses = 0
        self.requests = 0
        self.refusals = 0
        """The number of requests that were refused as a whole."""
        self.last_route: Route | None = None
        self.last_ns = 0
        """The start of the last request, by ``counter_ns``."""

    # ------------------------------------------------------------------------- its connection calls

    def process(self, begun_ns: int, most: int) -> int:
        """Handle whole frames until there is a reason to pause or the turn has ended.

        ``begun_ns`` is the start of the turn, ``most`` the number of requests that it may still
        handle. Returns the rest of that number if it stopped only to have ``out`` written first.
        Malformed, FrameRefused, CloseConnection and internal errors must end the connection.
        """
        frames = self._frames
        self._frame = None
        if self._seen != self._generation.number:
            self._seen = self._generation.number
            self.forget_plans()
        now_ns = begun_ns
        for left in range(most - 1, -1, -1):
            if self.pauses:
                self._frame = None
                return 0
            if now_ns - begun_ns > TURN_NS:
                break
            repeated = self._repeated
            if repeated is None or not self._take_short(repeated[0], repeated[1], now_ns):
                frame = self._frame = frames.next_frame()
                if frame is None:
                    if frames.wanted_bytes:
                        self._intake.begin_large()
                    return 0
                self.last_ns = now_ns
                self._handle(frame, now_ns)
                if frames.frame_is_owned and not self._intake.is_lent:
                    self._intake.handled()
                if left and self.out_bytes >= WRITE_BYTES:
                    return left
            now_ns = counter_ns()
        # The others' turn; the rest waits in the buffer.
        self._frame = None
        if self._line is not None:
            self._line.queue_delivery()
        return 0

    def collect(self) -> None:
        """Move the next responses, in order, into ``out``."""
        due = self._due
        if due:
            now_ns = counter_ns()
            out = self.out
            while due:
                head = due[0]
                if isinstance(head, Deferred):
                    chunks = head.chunks
                    if chunks is None:
                        break
                    out += chunks
                    self.out_bytes += len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))
                    if head.route is not None:
                        head.route.times.observe(now_ns - head.begun_ns, head.requests)
                else:
                    out.extend(head)
                    size = sum(map(len, head))
                    self.out_bytes += size
                    self._queued_bytes -= size
                due.popleft()
        if self._parked is not None and self._parked.chunks is not None:
            run = self._parked.run
            if run is not None and run.is_last:
                self.pauses |= DRAINING
            self._parked = None
            self.pauses &= ~HANDLING
        if self.pauses & PIPELINED and not self._over_limit():
            self.pauses &= ~PIPELINED

    @property
    def owes(self) -> bool:
        """Return whether a response is missing, or waits for a missing one."""
        return bool(self._due)

    @property
    def client_id(self) -> str:
        """Return the client ID of the last requests."""
        return (self._client or b"").decode("utf-8", "replace")

    @property
    def apis(self) -> frozenset[int]:
        """Return the API keys of the requests since the last change of permissions."""
        return frozenset(plan[0].key for plan in self._plans.values())

    @property
    def is_parked(self) -> bool:
        """Return whether a waiting request blocks the following ones."""
        return self._parked is not None

    def describe_frame(self) -> str:
        """Return the last handled request for the log, or an empty text.

        Before the login a frame may be shorter than any request, or a token, which is secret.
        """
        frame = self._frame
        gate = self._line.gate if self._line is not None else None
        if frame is None or len(frame) < HEADER_BYTES or (gate is not None and gate.login.raw):
            return ""
        key_and_version = _request_header(frame)[0]
        key, version = key_and_version >> 16, ((key_and_version & 0xFFFF) ^ 0x8000) - 0x8000
        route = self._routes.get(key)
        name = route.name if route is not None else str(key)
        return f"api={name} version={version} "

    def forget_plans(self) -> None:
        """Clear the cached plans, because the table of routes has changed."""
        self._plans.clear()
        self._repeated = None

    def drain(self) -> None:
        """Stop handling requests, and end waits that can be cut short."""
        self.pauses |= DRAINING
        if self._parked is not None and self._parked.run is not None:
            self._parked.run.complete_early()

    def abandon(self) -> None:
        """Drop everything: the peer has disconnected."""
        self.pauses |= CLOSED
        due, self._due = self._due, deque()
        self._parked = None
        self._repeated = None
        self._frame = None
        self._plans = {}
        self._line = None
        self.out = []
        if self._mute is not None:
            self._mute.cancel()
        for each in due:
            if isinstance(each, Deferred):
                self.charge(each, None)  # What a request has used counts without a response, too.
                each.abandoned()

    def complete_parked_early(self) -> None:
        """Cut a wait short if a request that is not a Fetch has arrived after it.

        Another Fetch does not: a client with two in flight would get empty responses in a loop.
        """
        parked = self._parked
        if parked is None or parked.run is None:
            return
        key = self._frames.next_key()
        if key is not None and key != FETCH_KEY:
            parked.run.complete_early()

    # --------------------------------------------------- where deferred answers come, and runs end

    def answered(self, deferred: Deferred[Any]) -> None:
        """Charge the usage of a Deferred, and queue its encoded response, if any."""
        line = self._line
        if line is None or self.pauses & CLOSED:
            return
        if deferred.usage is not None:
            self.charge(deferred, deferred.response)
        if deferred.chunks is not None:
            line.queue_delivery()
            return
        route = deferred.route
        assert route is not None
        run = deferred.run
        may_be_long = not route.short or (run is not None and run.is_large)
        if may_be_long and is_long(deferred.response, LONG_ELEMENTS):
            encoding = self._large.encode(
                deferred.response, route, deferred.version, deferred.correlation_id
            )
            encoder = Run(encoding)
            deferred.run = encoder
            encoder.start(self, deferred, None, self._at_work)
            return
        try:
            deferred.chunks, _ = encoded(
                route.api.encode_response,
                deferred.response,
                deferred.version,
                deferred.correlation_id,
                answers_flexibly(route, deferred.version),
            )
        except Exception as error:  # noqa: BLE001  an internal error ends this connection, not the caller
            line.bug(route.name, error)
            return
        line.queue_delivery()

    def large_frame_is_decoded(self) -> None:
        """Return the memory of a frame that was decoded aside."""
        if self._intake.is_lent:
            self._intake.is_lent = False
            self._intake.handled()

    def close(self, reason: str) -> None:
        """Close the connection for a fault of the client."""
        if self._line is not None:
            self._line.close(reason)

    def bug(self, name: str, error: BaseException) -> None:
        """Close the connection after an internal error."""
        if self._line is not None:
            self._line.bug(name, error)

    # ------------------------------------------------------------------------------------- quotas

    def charge(self, answer: Deferred[Any], response: Any) -> None:  # noqa: ANN401
        """Count a request's usage for the client's quotas, before the response is sent."""
        usage, answer.usage = answer.usage, None
        if usage is not None:
            assert answer.route is not None
            self._charge(usage, answer.route, response)

    def _charge(self, usage: Usage, route: Route, response: Any) -> None:  # noqa: ANN401
        """Pause the client if it exceeds a quota; the response has the throttle time."""
        throttle_ms = throttle_of(usage, route, response)
        if throttle_ms >= 1 and not self.pauses & CLOSED:
            if self._mute is None:
                self._mute = Mute(self, self._limits.clock)
            self._mute.extend(throttle_ms)
            self.pauses |= THROTTLED

    def unmute(self) -> None:
        """Resume reading requests after a throttle delay."""
        self.pauses &= ~THROTTLED
        self._resume()

    # -------------------------------------------------------------------------------- requests

    def _take_short(self, route: Route, shortcut: Shortcut, begun_ns: int) -> bool:
        """Handle the next requests by the latest one's shortcut; return False if they differ."""
        pending = shortcut.take(self._frames)
        if pending is None:
            return False
        pending.connection = self
        pending.begun_ns = begun_ns
        pending.route = route
        self.requests += pending.requests
        route.requests += pending.requests
        self.last_route = route
        self.last_ns = begun_ns
        self._due.append(pending)
        if self._backlog.is_behind or len(self._due) >= self._limit:
            self._hold_back()
        return True

    def _handle(self, frame: memoryview, begun_ns: int) -> None:
        """Decode one request, call its handler, and queue the response or its Deferred."""
        assert self._line is not None
        gate = self._line.gate
        if gate is not None:
            answer = gate.judge(frame)
            if answer is not None:
                self._answer_from_gate(answer)
                return
        key_and_version, correlation_id, client_size = _request_header(frame)
        position = HEADER_BYTES
        client = None
        if client_size >= 0:
            position += client_size
            client = bytes(frame[HEADER_BYTES:position])
        plan = self._plans.get(key_and_version)
        if plan is None or client != self._client:
            plan = self._plan(frame, key_and_version, client)
            if plan is None:
                return
        route, context, version, flexible, flexible_answer, decode, handler, encode, shortcut = plan
        if flexible:
            position = skip_header_tags(frame, position)
        self.requests += 1
        route.requests += 1
        self.last_route = route
        quota = context.quota
        if len(frame) > route.large_bytes and route.api.key != PRODUCE_KEY and gate is None:
            self._handle_large(frame, position, plan, correlation_id, begun_ns)
            return
        if self._frames.frame_is_owned:
            request = self._large.decode_here(decode, frame, position, version)
        else:
            request = decode(frame, position, version)
        if shortcut is not None:
            shortcut.learn(frame, position, request)
            self._repeated = route, shortcut
        is_coroutine = route.is_coroutine
        try:
            response = handler(context, request)
        except KafkaError as error:
            response, is_coroutine = self.refused(route, request, error), False
        except CloseConnection:
            if quota is not None:
                self._charge(Usage(quota, len(frame), counter_ns() - begun_ns), route, None)
            raise
        if is_coroutine or isinstance(response, Run):
            run = response if isinstance(response, Run) else Run(response)
            response = self._begin(run, route, version, request)
        usage = None if quota is None else Usage(quota, len(frame), counter_ns() - begun_ns)
        if response is None:
            if usage is not None:
                self._charge(usage, route, None)
            self._hold_back()  # No answer (acks=0), but what it appended waits for the disk too.
            return
        may_be_long = not route.short
        if isinstance(response, Deferred):
            if response.response is None:
                response.begun_ns = begun_ns
                response.usage = usage
                self._defer(response, route, version, correlation_id)
                return
            may_be_long = may_be_long or (response.run is not None and response.run.is_large)
            response = response.response
        if usage is not None:
            self._charge(usage, route, response)
        if may_be_long and is_long(response, LONG_ELEMENTS):
            self._encode_aside(response, route, version, correlation_id, begun_ns)
            return
        chunks, size = encoded(encode, response, version, correlation_id, flexible_answer)
        self._answer(chunks, size)
        route.times.observe(counter_ns() - begun_ns)

    def _encode_aside(
        self,
        response: Any,  # noqa: ANN401
        route: Route,
        version: int,
        correlation_id: int,
        begun_ns: int,
    ) -> None:
        """Encode a long response on a thread, and handle nothing else until then."""
        answer: Deferred[Any] = Deferred()
        answer.response = response
        answer.begun_ns = begun_ns
        run = Run(self._large.encode(response, route, version, correlation_id))
        answer.run = run
        self._defer(answer, route, version, correlation_id)
        run.start(self, answer, None, self._at_work)

    def refused(self, route: Route, request: Any, error: KafkaError) -> Any:  # noqa: ANN401
        """Return the response for an error of the whole request."""
        self.refusals += 1
        return refusal(route, request, error)

    def _plan(self, frame: memoryview, key_and_version: int, client: bytes | None) -> Plan | None:
        """Prepare everything that stays the same for requests of this key, version and client.

        Returns None where the request has been dealt with: ApiVersions of an unknown version.
        """
        header, _ = decode_request_header(frame)
        key, version = header.api_key, header.api_version
        if client != self._client:
            self._client = client
            self._plans.clear()
        route = self._routes.get(key)
        if route is None:
            raise CloseConnection(f"unknown api key {key}")
        if not route.min_version <= version <= route.max_version:
            if key == API_VERSIONS_KEY:
                self._unsupported_api_versions(route, header.correlation_id)
                return None
            raise CloseConnection(
                f"unsupported version, served are {route.min_version} to {route.max_version}"
            )
        api = route.api
        assert self._line is not None
        session = self._line.session
        quota = self._limits.quotas.client_quota(session.principal.name, header.client_id or "")
        context = RequestContext(self._line, key, version, header.client_id, session.access, quota)
        plan = (
            route,
            context,
            version,
            version >= api.flexible_from,
            answers_flexibly(route, version),
            api.decode_request,
            route.handler,
            api.encode_response,
            route.shortcut(context) if route.shortcut is not None and quota is None else None,
        )
        self._plans[key_and_version] = plan
        return plan

    def _unsupported_api_versions(self, route: Route, correlation_id: int) -> None:
        """Send Apache Kafka's response: a v0 body with error 35 and the range of key 18.

        ApiVersions is the only API with a response to unknown versions: a client that is newer
        than the broker learns from it which version to use.
        """
        self.requests += 1
        answer = range_answer(route, correlation_id)
        self._answer([answer], len(answer))

    def _begin(
        self,
        run: Run[Any],
        route: Route,
        version: int,
        request: Any,  # noqa: ANN401
    ) -> Deferred[Any] | None:
        """Start a run; return the response that it completes, or has completed, or None."""
        answer: Deferred[Any] = Deferred()
        answer.run = run
        answer.route = route
        answer.version = version
        run.start(self, answer, request, self._at_work)
        return None if answer.chunks == [] else answer

    def _handle_large(
        self, frame: memoryview, position: int, plan: Plan, correlation_id: int, begun_ns: int
    ) -> None:
        """Start a large request, which a thread decodes, and handle no other until then."""
        route, context, version = plan[0], plan[1], plan[2]
        self._intake.is_lent = self._frames.frame_is_owned
        if not self._intake.is_lent:
            frame = memoryview(bytes(frame))  # Later requests overwrite the ring.
        answer: Deferred[Any] = Deferred()
        answer.begun_ns = begun_ns
        if context.quota is not None:
            answer.usage = Usage(context.quota, len(frame), 0)
        run = self._large.run(self, frame, position, route, context, answer)
        answer.run = run
        self._defer(answer, route, version, correlation_id)
        run.start(self, answer, None, self._at_work)
        self.complete_parked_early()

    def _defer(
        self, deferred: Deferred[Any], route: Route, version: int, correlation_id: int
    ) -> None:
        deferred.route = route
        deferred.version = version
        deferred.correlation_id = correlation_id
        deferred.connection = self
        self._due.append(deferred)
        if deferred.run is not None and deferred.run.is_parked:
            self._park(deferred)
            self.complete_parked_early()
        else:
            self._hold_back()

    def _park(self, answer: Deferred[Any]) -> None:
        """Stop handling requests until this response is complete."""
        self._parked = answer
        self.pauses |= HANDLING

    def _hold_back(self) -> None:
        """Pause if the journal is behind, or if too many responses are pending."""
        if self._over_limit():
            self.pauses |= PIPELINED
        if self._backlog.is_behind and self._line is not None:
            self.pauses |= BACKLOGGED
            self._backlog.wait(self)

    def caught_up(self) -> None:
        """Resume handling requests once the journal has caught up."""
        self.pauses &= ~BACKLOGGED
        self._resume()

    def _resume(self) -> None:
        if self._line is not None:
            self._line.queue_delivery()

    def _answer_from_gate(self, answer: Chunks | Run[Encoded]) -> None:
        """Queue the response of the gate; the connection closes after a delayed refusal."""
        self.requests += 1
        if isinstance(answer, list):
            self._answer(answer, sum(map(len, answer)))
            return
        held: Deferred[Any] = Deferred()
        held.run = answer
        held.connection = self
        self._due.append(held)
        self._park(held)
        answer.start(self, held, None, self._at_work)

    def _answer(self, chunks: Chunks, size: int) -> None:
        """Queue a response that is ready, after the pending ones."""
        if self._due:
            self._due.append(chunks)
            self._queued_bytes += size
            if self._over_limit():
                self.pauses |= PIPELINED
            return
        self.out += chunks
        self.out_bytes += size

    def _over_limit(self) -> bool:
        return (
            len(self._due) >= self._limit or self._queued_bytes >= self._limits.write_buffer_bytes
        )
