"""Requests to the broker's own handlers, as a client sends them, without a connection.

So validation, counting, permissions and durability are the same as for every client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

from barnabas.broker.api.client_seen import ClientSeen
from barnabas.broker.api.direct_call import response_to
from barnabas.broker.api.dispatch import CloseConnection, RequestContext
from barnabas.broker.api.peer_without_login import PeerWithoutLogin
from barnabas.broker.security.principals import ANONYMOUS
from barnabas.broker.security.session import Session
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.admin.exchange import Exchange
    from barnabas.broker.admin.observed import ObservedBroker
    from barnabas.broker.cluster.peers.sessions import PeerLink
    from barnabas.broker.security.acls.access import Access
    from barnabas.broker.security.quotas.quotas import ClientQuota
    from barnabas.protocol.api import Api

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
T = TypeVar("T")

CLIENT_ID: Final = "barnabas-console"
ANSWER_SECONDS: Final = 30.0
"""Maximum time of an action: it waits for the disk, or for a transaction's markers."""
_HOST: Final = ""


class _ConsoleAsPeer(PeerWithoutLogin):
    """Connection data for handlers that run without a connection."""

    def __init__(self, access: Access) -> None:
        self.session = Session(ANONYMOUS, access)
        self.endpoint = (_HOST, 0)
        self.listener_name = ""
        self.peer_host = access.host
        self.frame_is_owned = True
        self.seen = ClientSeen()
        self.link: PeerLink | None = None

    def close(self, reason: str) -> None:
        """Raise AssertionError: other brokers send no requests here."""
        raise AssertionError(reason)


class WireClient:
    """Client of one broker's handlers, as a user."""

    def __init__(self, broker: ObservedBroker, access: Access) -> None:
        self._routes = broker.routes
        self.clock = broker.clock
        self._access = access
        self._peer = _ConsoleAsPeer(access)
        self._quotas = broker.quotas

    def _quota(self) -> ClientQuota | None:
        """Return the present quotas of the user."""
        name = self._access.principal.partition(":")[2]
        return self._quotas.client_quota(name, CLIENT_ID)

    def produced(self, size_bytes: int) -> float:
        """Count written bytes; return the time in ms for which the user must not write.

        Without a connection there is nothing to slow down, so each writer must check.
        """
        quota = self._quota()
        return 0.0 if quota is None else quota.produced(size_bytes)

    async def run(self, exchange: Exchange[T]) -> T:
        """Return the result of an exchange with this broker; raises KafkaError."""
        response = None
        while True:
            try:
                sent = exchange.send(response)
            except StopIteration as ended:
                result: T = ended.value
                return result
            response = await self.ask(sent.api, sent.request, sent.at_most)

    async def ask(
        self, api: Api[Asked, Answered], request: Asked, version: int | None = None
    ) -> Answered:
        """Return the response, which is durable; raises KafkaError for an error of the request."""
        route = self._routes.get(api.key)
        assert route is not None, api.name
        asked_version = route.max_version if version is None else version
        context = RequestContext(
            self._peer, api.key, asked_version, CLIENT_ID, self._access, self._quota()
        )
        route.requests += 1
        try:
            async with self.clock.timeout(ANSWER_SECONDS):
                outcome = route.handler(context, request)
                return cast("Answered", await response_to(outcome, route))
        except TimeoutError:
            words = f"{api.name} has not been answered in {ANSWER_SECONDS:.0f} s"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, words) from None
        except CloseConnection as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error


def check(code: int, words: str | None = None) -> None:
    """Raise KafkaError if a response has an error."""
    if code:
        raise KafkaError(ErrorCode(code), words)
