"""Which function answers which request, and how its answer may come.

A handler registers itself beside its code::

    @serves(HEARTBEAT, versions=(0, 4))
    def heartbeat(groups: Groups, context: RequestContext, request: HeartbeatRequest) -> ...

What stands in front of ``context`` are the services that a handler needs; each broker fills them in
for itself, once (``Routes.bind``). One that needs many is a class that is made of them and called.

What is registered here is what ApiVersions advertises, so an API without a handler cannot be
advertised. What a handler returns:

* the response: it is on its way when the handler returns;
* a ``Run`` of a coroutine, or the coroutine itself (``async def``): the connection handles nothing
  else until it is done, unless the run says otherwise. How it waits: ``driver.py``, ``waits.py``;
* a ``Deferred``: the response comes by ``complete``, the connection goes on meanwhile;
* None: the request has no answer (Produce with acks=0).

No Task is made for any of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
)

from barnabas.broker.api.checks import CHECKS, Checks, guarded
from barnabas.broker.api.client_seen import ClientSeen
from barnabas.broker.security.acls.access import OPEN, Access
from barnabas.broker.security.quotas.quotas import ClientQuota
from barnabas.protocol.api import Api
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.counts import Histogram

if TYPE_CHECKING:
    from barnabas.broker.cluster.peers.sessions import PeerLink
    from barnabas.broker.security.sasl.login import LoggedIn, Login, LoginFailed, Outcome
    from barnabas.broker.security.session import Session
    from barnabas.protocol.frame import FrameBuffer
    from barnabas.storage.journal.refusal import Refusal

Request = TypeVar("Request")
Response = TypeVar("Response")

PRODUCE_KEY: Final = 0
FETCH_KEY: Final = 1
API_VERSIONS_KEY: Final = 18


class CloseConnection(Exception):
    """Raised by a handler whose only possible answer is to hang up; the text says why."""


class ResponseSink(Protocol):
    """What takes the answer of a Deferred: its connection, or what stands in front of that."""

    def answered(self, deferred: Deferred[Any]) -> None:
        """Take an answer that is complete."""

    def bug(self, name: str, error: BaseException) -> None:
        """Take note that there will be none, because of an error of ours."""

    def close(self, reason: str) -> None:
        """Hang up because of what the client did."""


class Waiter(ResponseSink, Protocol):
    """A run that awaits an answer."""

    def settle(self, value: Any) -> None:  # noqa: ANN401
        """Take the response, or None where there is none."""


class Running(Protocol):
    """A ``Run`` of ``driver.py``."""

    is_parked: bool
    is_large: bool
    is_last: bool

    def complete_early(self) -> None:
        """Wait for nothing that ends early."""

    def abandon(self) -> None:
        """End, now or at the next word: the client has gone."""


class Usage(NamedTuple):
    """What a request has used, of a client with limits: charged when it is answered."""

    quota: ClientQuota
    frame_bytes: int
    took_ns: int


class Deferred(Generic[Response]):
    """An answer that comes later, by callback. The connection handles what follows meanwhile.

    ``complete`` is called on the loop's thread, once; it encodes and queues, and never runs another
    handler. A run may await it.
    """

    __slots__ = (
        "begun_ns",
        "chunks",
        "connection",
        "correlation_id",
        "response",
        "route",
        "run",
        "usage",
        "version",
    )

    ends_early: ClassVar[bool] = False
    is_work: ClassVar[bool] = False
    requests = 1
    """How many requests this answers."""

    def __init__(self) -> None:
        self.chunks: list[Any] | None = None
        self.response: Response | None = None
        self.connection: ResponseSink | None = None
        self.route: Route | None = None
        self.run: Running | None = None
        """The run that comes to the response; None: it comes by a callback."""
        self.version = 0
        self.correlation_id = 0
        self.begun_ns = 0
        self.usage: Usage | None = None

    def __await__(self) -> Generator[Any, Any, Response]:
        response: Response = yield self
        return response

    def begin(self, ticket: Waiter) -> Callable[[], object] | None:
        """See ``Word`` of ``waits.py``."""
        if self.response is not None or self.chunks is not None:
            ticket.settle(self.response)
            return None
        self.connection = ticket
        return self._leave

    def _leave(self) -> None:
        self.connection = None

    def complete(self, response: Response) -> None:
        """Answer; before the handler has returned as well as long after the client left."""
        assert self.response is None, "answered twice"
        self.response = response
        if self.connection is not None:
            self.connection.answered(self)

    def complete_encoded(self, chunks: list[Any]) -> None:
        """Answer with what is encoded already."""
        self.chunks = chunks
        if self.connection is not None:
            self.connection.answered(self)

    def complete_unanswered(self) -> None:
        """Say that this is over, and that it has no answer (Produce with acks=0)."""
        self.complete_encoded([])

    def abandoned(self) -> None:
        """End the run: the client has gone."""
        self.connection = None
        if self.run is not None:
            self.run.abandon()


class Peer(Protocol):
    """The connection that a request came from, as far as handlers may know it."""

    link: PeerLink | None
    """Which broker it is, of those that have said; None for every client."""

    @property
    def session(self) -> Session:
        """Return who the client is."""

    @property
    def login(self) -> Login | None:
        """Return the login that is under way."""

    def login_again(self) -> Login | None:
        """Begin the repetition of a login; None where there is nothing to repeat."""

    def logged_in(self, outcome: LoggedIn) -> int:
        """Serve the client as who it has proved to be; return for how many ms, 0: no limit."""

    def take_token(self, token: bytes) -> Outcome:
        """Take the next token of the login under way; raises CloseConnection."""

    def login_failed(self, failed: LoginFailed) -> float:
        """Take note of a failed login; return for how many ms its answer is to be held back."""

    @property
    def endpoint(self) -> tuple[str, int]:
        """Return the host and port a client of this connection must receive for this broker."""

    @property
    def listener_name(self) -> str:
        """Return the name of the listener that the client has come by."""

    @property
    def peer_host(self) -> str:
        """Return the client's address."""

    @property
    def seen(self) -> ClientSeen:
        """Return what is remembered of its requests, for who looks at clients."""

    @property
    def frame_is_owned(self) -> bool:
        """Return whether the frame in hand has a buffer of its own (see protocol/frame.py)."""

    def close(self, reason: str) -> None:
        """Hang up because of what the client did."""


class RequestContext:
    """Who asks, through what. Shared by all requests of a connection with one key and version."""

    __slots__ = ("access", "api_key", "api_version", "client_id", "connection", "quota")

    def __init__(
        self,
        connection: Peer,
        api_key: int,
        api_version: int,
        client_id: str | None,
        access: Access = OPEN,
        quota: ClientQuota | None = None,
    ) -> None:
        self.access = access
        """What the client may do."""
        self.quota = quota
        """What the client may use; None: as much as it likes."""
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.client_id = client_id

    @property
    def endpoint(self) -> tuple[str, int]:
        """Return the host and port this client must receive for this broker."""
        return self.connection.endpoint

    @property
    def records_stay(self) -> bool:
        """Return whether the request's memoryviews outlive the handler (see protocol/frame.py)."""
        return self.connection.frame_is_owned


class DurableAnswer(Deferred[Any]):
    """The answer to ``requests`` Produce requests in a row, which a commit group completes.

    It waits for the journal group that holds the last of their batches: groups become durable in
    order, so what the other partitions wrote is durable before it.
    """

    __slots__ = ("requests",)

    requests: int

    def prepare(self) -> None:
        """Make the answer ready, which leaves when what it promises is on disk."""
        raise NotImplementedError

    def refused(self, refusal: Refusal) -> None:
        """Answer with an error for what is not durable."""
        raise NotImplementedError


class Shortcut(Protocol):
    """Serves the common requests of one kind on one connection without decoding them."""

    def take(self, frames: FrameBuffer) -> DurableAnswer | None:
        """Handle the next request, and more of its kind; None: decode it after all."""

    def learn(self, frame: memoryview, position: int, request: Any) -> None:  # noqa: ANN401
        """Look at a request that was decoded, to know the next one like it."""


Handler: TypeAlias = Callable[..., Any]
"""Called with services, a RequestContext and a request; returns what the head of this file says."""
Refuse: TypeAlias = Callable[[Request, ErrorCode, str | None], Response]


@dataclass(slots=True)
class Route:
    """One API as this broker serves it. Each server counts on its own copy."""

    api: Api[Any, Any]
    min_version: int
    max_version: int
    handler: Handler
    is_coroutine: bool
    refuse: Callable[[Any, ErrorCode, str | None], Any] | None
    shortcut: Callable[..., Shortcut] | None = None
    in_slices: bool = False
    """Whether the handler takes a large request in slices; else it is one decision, which may have
    fewer elements."""
    short: bool = False
    """Whether the answer to a small request is small too; the others' answers are looked at."""
    requests: int = 0
    times: Histogram = field(default_factory=Histogram)
    """How long requests took, from their decoding until the answer is written; in nanoseconds."""

    @property
    def key(self) -> int:
        """Return the api key."""
        return self.api.key

    @property
    def name(self) -> str:
        """Return Kafka's name of the API."""
        return self.api.name

    def copy(self, **changes: Any) -> Route:  # noqa: ANN401
        """Return a route like this one, with its own counter."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return Route(**(values | {"requests": 0, "times": Histogram()} | changes))


class Routes:
    """A table of routes by api key, beside the table of what each asks to be allowed."""

    def __init__(self, routes: Iterable[Route] = (), checks: Checks = CHECKS) -> None:
        self._checks = checks
        self._by_key: dict[int, Route] = {}
        for route in routes:
            self.add(route)

    def add(self, route: Route) -> None:
        """Register a route; a key has one route."""
        api = route.api
        assert route.name in self._checks, f"{route.name} has no row in the table of checks"
        assert route.key not in self._by_key, f"{route.name} has two handlers"
        assert api.min_version <= route.min_version <= route.max_version <= api.max_version, (
            f"{route.name} {route.min_version}-{route.max_version} is not covered by the codec"
        )
        self._by_key[route.key] = route

    def replace(self, route: Route) -> None:
        """Put a route in the place of the one with its key."""
        assert route.key in self._by_key, f"{route.name} has no handler"
        self._by_key[route.key] = route

    def get(self, key: int) -> Route | None:
        """Return the route of an api key."""
        return self._by_key.get(key)

    def __iter__(self) -> Iterator[Route]:
        """Iterate over all routes, ordered by key."""
        return iter([self._by_key[key] for key in sorted(self._by_key)])

    def __len__(self) -> int:
        return len(self._by_key)

    def bind(self, services: Mapping[str, object], *, is_controlled: bool = False) -> None:
        """Give each handler what it names in front of ``context``, by the names of ``services``.

        ``is_controlled``: there is access control, so what the table of checks asks of a whole
        request is checked before each handler. Raises KeyError where there is no such service.
        """
        for route in self:
            checks = self._checks[route.name] if is_controlled else ()
            route.handler = guarded(checks, bound(route.handler, services))
            if route.shortcut is not None:
                route.shortcut = bound(route.shortcut, services)

    def copy(self) -> Routes:
        """Return a table of copies: what one server uses."""
        return Routes((route.copy() for route in self), self._checks)

    def serves(
        self,
        api: Api[Request, Response],
        *,
        versions: tuple[int, int],
        refuse: Refuse[Request, Response] | None = None,
        shortcut: Callable[..., Shortcut] | None = None,
        in_slices: bool = False,
        short: bool = False,
    ) -> Callable[[Handler], Handler]:
        """Register a handler for ``api``, answering ``versions`` (both ends included).

        ``refuse`` says how this API reports one error for the whole request: what a KafkaError
        that leaves the handler becomes. ``in_slices``, ``short``: see ``Route``.
        """

        def register(handler: Handler) -> Handler:
            self.add(
                Route(
                    api=api,
                    min_version=versions[0],
                    max_version=versions[1],
                    handler=handler,
                    is_coroutine=inspect.iscoroutinefunction(handler),
                    refuse=refuse,
                    shortcut=shortcut,
                    in_slices=in_slices,
                    short=short,
                )
            )
            return handler

        return register


def bound(function: Callable[..., Any], services: Mapping[str, object]) -> Callable[..., Any]:
    """Return ``function`` with the services filled in that stand in front of ``context``.

    A class without ``context`` is made with all that it names: the object is the handler then.
    """
    names = list(inspect.signature(function).parameters)
    assert names, f"{function} does not say what it takes: a coroutine that is compiled"
    if isinstance(function, type) and "context" not in names:
        handler: Handler = function(*map(services.__getitem__, names))
        return handler
    needed = names[: names.index("context")] if "context" in names else []
    return partial(function, *map(services.__getitem__, needed)) if needed else function


ROUTES = Routes()
"""Everything broker/handlers registers."""

serves = ROUTES.serves
