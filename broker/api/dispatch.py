"""Registry of request handlers, and the ways in which a handler responds.

A handler registers itself beside its code::

    @serves(HEARTBEAT, versions=(0, 4))
    def heartbeat(groups: Groups, context: RequestContext, request: HeartbeatRequest) -> ...

The parameters before ``context`` are the services that a handler needs; each broker binds them once
(``Routes.bind``). A handler that needs many services is a class, which is created with them and
called.

ApiVersions advertises the registered APIs only. A handler returns one of:

* the response: it is sent when the handler returns;
* a ``Run`` of a coroutine, or the coroutine itself (``async def``): the connection handles no
  other request until it has finished, unless the run allows that. See ``driver.py``, ``waits.py``;
* a ``Deferred``: ``complete`` delivers the response, the connection handles requests meanwhile;
* None: the request has no response (Produce with acks=0).

No Task is created for any of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, partial
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

LARGE_BYTES: Final = 8 * 1024
"""The cheapest element of a request has three bytes: 8 KB are 20 ms of work at the very most, and
usually one. A client that commits offsets of 200 partitions at a time is here already, for which a
hop to a thread and back (0.1 ms) is little."""

PRODUCE_KEY: Final = 0
FETCH_KEY: Final = 1
API_VERSIONS_KEY: Final = 18


class CloseConnection(Exception):
    """Raised by a handler that can only close the connection; the text is the reason."""


class ResponseSink(Protocol):
    """Receiver of a Deferred's response: its connection, or a wrapper of the connection."""

    def answered(self, deferred: Deferred[Any]) -> None:
        """Receive a complete response."""

    def bug(self, name: str, error: BaseException) -> None:
        """Report an internal error, after which the request has no response."""

    def close(self, reason: str) -> None:
        """Close the connection because of an error of the client."""


class Waiter(ResponseSink, Protocol):
    """A run that awaits a response."""

    def settle(self, value: Any) -> None:  # noqa: ANN401
        """Receive the response, or None without one."""


class Running(Protocol):
    """A ``Run`` of ``driver.py``."""

    is_parked: bool
    is_large: bool
    is_last: bool

    def complete_early(self) -> None:
        """Ignore the request for an early end."""

    def abandon(self) -> None:
        """End now or at the next wait, since the client has disconnected."""


class Usage(NamedTuple):
    """Resources that a request of a client with quotas has used, charged with its response."""

    quota: ClientQuota
    frame_bytes: int
    took_ns: int


class Deferred(Generic[Response]):
    """A response that comes later, by callback. The connection handles what follows meanwhile.

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
    """Number of requests that this response completes."""

    def __init__(self) -> None:
        self.chunks: list[Any] | None = None
        self.response: Response | None = None
        self.connection: ResponseSink | None = None
        self.route: Route | None = None
        self.run: Running | None = None
        """Coroutine that computes the response, or None if a callback delivers it."""
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
        """Deliver the response, before or after the handler has returned."""
        assert self.response is None, "answered twice"
        self.response = response
        if self.connection is not None:
            self.connection.answered(self)

    def complete_encoded(self, chunks: list[Any]) -> None:
        """Deliver an encoded response."""
        self.chunks = chunks
        if self.connection is not None:
            self.connection.answered(self)

    def complete_unanswered(self) -> None:
        """Finish a request that has no response (Produce with acks=0)."""
        self.complete_encoded([])

    def abandoned(self) -> None:
        """End the run, since the client has disconnected."""
        self.connection = None
        if self.run is not None:
            self.run.abandon()


class Peer(Protocol):
    """Parts of the request's connection that handlers may use."""

    link: PeerLink | None
    """Link of the broker at the other end, or None for a client."""

    @property
    def session(self) -> Session:
        """Return the authenticated session of the client."""

    @property
    def login(self) -> Login | None:
        """Return the login that is under way."""

    def login_again(self) -> Login | None:
        """Start to repeat a login; return None if none can be repeated."""

    def logged_in(self, outcome: LoggedIn) -> int:
        """Apply a successful authentication; return its lifetime in ms, or 0 for no limit."""

    def take_token(self, token: bytes) -> Outcome:
        """Process the next token of the present login; raises CloseConnection."""

    def login_failed(self, failed: LoginFailed) -> float:
        """Record a failed authentication; return the delay of its response in ms."""

    @property
    def endpoint(self) -> tuple[str, int]:
        """Return the host and port a client of this connection must receive for this broker."""

    @property
    def listener_name(self) -> str:
        """Return the name of the client's listener."""

    @property
    def peer_host(self) -> str:
        """Return the client's address."""

    @property
    def seen(self) -> ClientSeen:
        """Return the recorded properties and requests of the client."""

    @property
    def frame_is_owned(self) -> bool:
        """Return whether the present frame has its own buffer (see protocol/frame.py)."""

    def close(self, reason: str) -> None:
        """Close the connection because of an error of the client."""


class RequestContext:
    """Client and connection of a request, shared by all requests with one API key and version."""

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
        """Permissions of the client."""
        self.quota = quota
        """Quota of the client, or None if it has none."""
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
    """The response to ``requests`` Produce requests in a row, which a commit group completes.

    It waits for the journal group that holds the last of their batches: groups become durable in
    order, so what the other partitions wrote is durable before it.
    """

    __slots__ = ("requests",)

    requests: int

    def prepare(self) -> None:
        """Prepare the response, which is sent when its records are on disk."""
        raise NotImplementedError

    def refused(self, refusal: Refusal) -> None:
        """Replace the results of records that did not become durable by errors."""
        raise NotImplementedError


class Shortcut(Protocol):
    """Serves the common requests of one kind on one connection without decoding them."""

    def take(self, frames: FrameBuffer) -> DurableAnswer | None:
        """Handle the next requests if they have the known shape; otherwise return None."""

    def learn(self, frame: memoryview, position: int, request: Any) -> None:  # noqa: ANN401
        """Examine a decoded request, to recognize following requests of the same shape."""


Handler: TypeAlias = Callable[..., Any]
"""Function of services, a RequestContext and a request; see the module for its results."""
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
    """Whether small requests have small responses; the size of other responses is checked."""
    large_bytes: int = LARGE_BYTES
    """Size above which a request is decoded on a thread (network/large.py)."""
    requests: int = 0
    times: Histogram = field(default_factory=Histogram)
    """Times from decoding to the written response, in nanoseconds."""

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
    """Routes by API key, and the permissions that each of them requires."""

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
        """Replace the route with the same key."""
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
        """Pass the services to each handler that it names before ``context``.

        ``is_controlled``: whether access control is on, so that the checks of whole requests
        precede each handler. Raises KeyError for an unknown service.
        """
        for route in self:
            checks = self._checks[route.name] if is_controlled else ()
            route.handler = guarded(checks, bound(route.handler, services))
            if route.shortcut is not None:
                route.shortcut = bound(route.shortcut, services)

    def copy(self) -> Routes:
        """Return a table of copied routes for one server."""
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
        large_bytes: int = LARGE_BYTES,
    ) -> Callable[[Handler], Handler]:
        """Register a handler of ``api`` for ``versions`` (both ends included).

        ``refuse`` builds the response with one error for the whole request, for a KafkaError that
        the handler raises. ``in_slices``, ``short``, ``large_bytes``: see ``Route``.
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
                    large_bytes=large_bytes,
                )
            )
            return handler

        return register


def bound(function: Callable[..., Any], services: Mapping[str, object]) -> Callable[..., Any]:
    """Return ``function`` with its parameters before ``context`` bound to services.

    A class without ``context`` is instantiated with all services that it names: the object is the
    handler.
    """
    names = _parameters_of(function)
    assert names, f"{function} does not say what it takes: a coroutine that is compiled"
    if isinstance(function, type) and "context" not in names:
        handler: Handler = function(*map(services.__getitem__, names))
        return handler
    needed = names[: names.index("context")] if "context" in names else []
    return partial(function, *map(services.__getitem__, needed)) if needed else function


@cache
def _parameters_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters; each broker of a process binds the same handlers."""
    return list(inspect.signature(function).parameters)


ROUTES = Routes()
"""Everything broker/handlers registers."""

serves = ROUTES.serves
