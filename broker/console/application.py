"""The console as a whole: a request in, a response out.

Rules of this file:

* A broker that has not recovered, or has failed, returns no data: its memory does not have the
  state that clients will meet.
* Every error is returned as ``{"error": KAFKA_NAME, "message": words}``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final

from barnabas.broker.admin.observed import ObservedBroker, check_serving
from barnabas.broker.console.actions.command import Conflict
from barnabas.broker.console.actions.fields import Refused, read_body
from barnabas.broker.console.actions.performing import Asked, Found, find, methods_of, perform
from barnabas.broker.console.assets import Assets
from barnabas.broker.console.encoding import as_json, body_of, size_of
from barnabas.broker.console.jobs.registry import Jobs
from barnabas.broker.console.lengths import check_names
from barnabas.broker.console.live import Live, read_watch
from barnabas.broker.console.openapi import text
from barnabas.broker.console.pages.elsewhere import with_leader
from barnabas.broker.console.pages.lag_history import LagHistory
from barnabas.broker.console.pages.worst import WorstFinder
from barnabas.broker.console.parameters import read_query
from barnabas.broker.console.questions import Question
from barnabas.broker.console.records.pieces import RecordReaders
from barnabas.broker.console.records.places import Places
from barnabas.broker.console.route import Route
from barnabas.broker.console.routes import LIVE, match
from barnabas.broker.console.shapes import Error
from barnabas.broker.http.messages.answer import JSON, Answer, json_answer
from barnabas.broker.http.messages.request import Request
from barnabas.broker.http.site import CONSOLE, READING
from barnabas.broker.security.acls.access import Access
from barnabas.protocol.errors import ErrorCode, KafkaError

_API: Final = ("api",)
_ASSETS: Final = ("assets",)
"""First parts of paths; all the others are addresses of the page."""
OPENAPI: Final = "/api/openapi.json"
EVENTS: Final = "text/event-stream"

STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.INVALID_GROUP_ID: 400,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
    ErrorCode.POLICY_VIOLATION: 403,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.OFFSET_OUT_OF_RANGE: 404,
    ErrorCode.OFFSET_NOT_AVAILABLE: 404,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: 404,
    ErrorCode.NON_EMPTY_GROUP: 409,
    ErrorCode.TOPIC_ALREADY_EXISTS: 409,
    ErrorCode.SECURITY_DISABLED: 409,
    ErrorCode.INVALID_TXN_STATE: 409,
    ErrorCode.CONCURRENT_TRANSACTIONS: 409,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: 429,
    ErrorCode.BROKER_NOT_AVAILABLE: 503,
    ErrorCode.KAFKA_STORAGE_ERROR: 503,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: 503,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: 503,
    ErrorCode.NOT_COORDINATOR: 503,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: 503,
    ErrorCode.REQUEST_TIMED_OUT: 503,
}
"""HTTP status of each error; any other error is an internal one."""


class Console:
    """Request handler of one broker's console."""

    def __init__(self, broker: ObservedBroker) -> None:
        self._broker = broker
        self._worst = WorstFinder()
        self._places = Places(broker.answer_memory)
        self._jobs = Jobs()
        self._lags = LagHistory()
        self._live = Live(broker, self._worst, self._lags)
        self._assets = Assets()

    def answer(self, request: Request, access: Access) -> Answer | Awaitable[Answer]:
        """Return the response to a request with its permissions, or an awaitable of it."""
        if request.parts[:1] == _API and request.method not in READING:
            return self._change(request, access)
        if request.path == OPENAPI and request.method in READING:
            return Answer(200, JSON, (text(),))
        try:
            if request.parts[:1] != _API:
                return self._page(request)
            if request.path == LIVE.template:
                values = read_query(LIVE.parameters, request.query)
                return self._live.answer(access, read_watch(str(values["watch"])))
            found = match(request.parts)
            check_names(found.names)
            check_serving(self._broker)
            route = found.route
            route.check_allowed(access, found.names)
            values = read_query(route.parameters, request.query)
        except KafkaError as error:
            return refusal(error)
        question = Question(
            self._broker,
            self._worst,
            self._lags,
            access,
            found.names,
            values,
            places=self._places,
            jobs=self._jobs,
            accepts_events=EVENTS in request.headers.get("accept", ""),
        )
        return _answer_later(route, question)

    def _change(self, request: Request, access: Access) -> Answer | Awaitable[Answer]:
        """Return the response to a request that changes something."""
        found = find(request.method, request.parts)
        if found is None:
            allowed = methods_of(request.parts)
            words = f"only {', '.join(allowed)}" if allowed else "this path allows no changes"
            error = KafkaError(ErrorCode.INVALID_REQUEST, words)
            return refusal(error, 405, {"Allow": ", ".join((*allowed, *READING))})
        try:
            check_names(found.names)
            check_serving(self._broker)
            body = read_body(request)
        except Refused as refused:
            return refusal(KafkaError(ErrorCode.INVALID_REQUEST, str(refused)), refused.status)
        except KafkaError as error:
            return refusal(error)
        given = Asked(access, request.query, body)
        return _perform_later(found, self._broker, given, self._jobs, self._places.readers)

    def _page(self, request: Request) -> Answer:
        """Return the page, or a file of it; raises KafkaError."""
        if request.method not in READING:
            allowed = ", ".join(READING)
            error = KafkaError(ErrorCode.INVALID_REQUEST, f"only {allowed}")
            return refusal(error, 405, {"Allow": allowed})
        if request.parts[:1] == _ASSETS:
            return self._assets.answer(request)
        return self._assets.page(200 if request.parts[:1] in CONSOLE else 404)


async def _answer_later(route: Route, question: Question) -> Answer:
    try:
        found = await route.answering(question)
    except KafkaError as error:
        return refusal(with_leader(error, question.broker.view))
    if isinstance(found, Answer):
        return found
    body = body_of(found)
    if isinstance(body, tuple):
        return Answer(200, JSON, body)
    # It is written piece by piece: until the last one is read all of it exists.
    holding = question.broker.answer_memory.holding(question.access.principal)
    try:
        holding.hold(size_of(found))
    except KafkaError as error:
        holding.release()
        return refusal(error)
    return Answer(200, JSON, body, holding=holding)


async def _perform_later(
    found: Found,
    broker: ObservedBroker,
    given: Asked,
    jobs: Jobs,
    readers: RecordReaders,
) -> Answer:
    try:
        effect = await perform(found, broker, given, jobs, readers)
    except Conflict:
        words = "the object changed after the preview: preview the change again"
        return refusal(KafkaError(ErrorCode.INVALID_REQUEST, words), 409)
    except KafkaError as error:
        return refusal(with_leader(error, broker.view), STATUS.get(error.code, 400))
    return Answer(200, JSON, body_of(effect))


def refusal(
    error: KafkaError, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """Return an error as a response."""
    shown = Error(error.code.name, error.message)
    if status is None:
        status = STATUS.get(error.code, 500)
    answer = json_answer(status, as_json(shown))
    return Answer(answer.status, answer.content_type, answer.body, headers or {})
