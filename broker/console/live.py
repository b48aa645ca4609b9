"""Server-sent events with the newest state, once a second, for each viewer.

Rules of this file:

* **The newest state, not a queue.** A viewer that has not read the last state gets no new one; a
  viewer that reads nothing is disconnected.
* **Nothing is collected without viewers**, and state for several viewers is collected once.
* Unchanged state is not sent again; a comment keeps proxies and browsers connected.
* Permissions and the password of a viewer are verified every second: the stream ends with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import unquote

from barnabas.broker.admin.observed import ObservedBroker, check_serving
from barnabas.broker.console.encoding import text_of
from barnabas.broker.console.pages.elsewhere import with_leader
from barnabas.broker.console.parameters import read_query
from barnabas.broker.console.questions import FindsWorst, Question, RemembersLag
from barnabas.broker.console.route import Route
from barnabas.broker.console.routes import ROUTES
from barnabas.broker.console.shapes import Error
from barnabas.broker.http.messages.answer import Answer, Stream, Viewer
from barnabas.broker.security.acls.access import Access
from barnabas.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger("barnabas.broker.console")

INTERVAL_SECONDS: Final = 1.0
COMMENT_SECONDS: Final = 15
"""Maximum time without any event."""
RETRY_MS: Final = 3000
"""Delay after which a disconnected browser reconnects."""
LOOK_SECONDS: Final = 5.0
"""Maximum time to collect one state: it waits for the disk."""
WATCHED_MOST: Final = 8
"""Maximum number of watched resources of one stream."""
BEGIN: Final = f"retry: {RETRY_MS}\n\n"
COMMENT: Final = ":\n\n"
_TOO_SLOW: Final = KafkaError(
    ErrorCode.REQUEST_TIMED_OUT, "the disk does not respond, or the view is too large"
)

WATCHABLE: Final[Mapping[str, Route]] = {route.watched: route for route in ROUTES if route.watched}


class Watched(NamedTuple):
    """One watched object: its route and its name in the path."""

    text: str
    """Resource as named in the request."""
    route: Route
    names: tuple[tuple[str, str], ...]


class _State(NamedTuple):
    """State of one resource."""

    event: str
    lasting: str
    """The part of the state that does not change with time alone."""


@dataclass(slots=True)
class _View:
    """Watched resources of one viewer, and the last state sent."""

    access: Access
    watched: tuple[Watched, ...]
    shown: dict[str, str] = field(default_factory=dict)
    quiet_seconds: int = 0


def read_watch(text: str) -> tuple[Watched, ...]:
    """Return the resources that a request watches; raises KafkaError.

    Resources are separated by commas, names are percent-encoded: ``overview,group:a%2Cb``.
    """
    things = dict.fromkeys(text.split(","))
    if len(things) > WATCHED_MOST:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"watch: at most {WATCHED_MOST} objects")
    return tuple(map(_watched, things))


def _watched(text: str) -> Watched:
    kind, colon, name = text.partition(":")
    route = WATCHABLE.get(kind)
    if route is None or bool(colon) != bool(route.name_in_path):
        there = ", ".join(
            f"{each}:{{{route.name_in_path}}}" if route.name_in_path else each
            for each, route in WATCHABLE.items()
        )
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"watch: expected names separated by commas, of: {there}"
        )
    names = ((route.name_in_path, unquote(name)),) if colon else ()
    return Watched(text, route, names)


class Live:
    """All viewers of one broker."""

    def __init__(self, broker: ObservedBroker, worst: FindsWorst, lags: RemembersLag) -> None:
        self._broker = broker
        self._worst = worst
        self._lags = lags
        self._views: dict[Viewer, _View] = {}
        self._looking: asyncio.Task[None] | None = None
        self._number = 0

    def answer(self, access: Access, watched: tuple[Watched, ...]) -> Answer:
        """Return an endless response for one viewer; raises KafkaError."""
        for each in watched:
            each.route.check_allowed(access, dict(each.names))

        def joined(viewer: Viewer) -> None:
            self._views[viewer] = _View(access, watched)
            if self._looking is None:
                self._looking = self._broker.loop.create_task(self._refresh_while_watched())

        return Answer(200, "text/event-stream", Stream(joined, self._left))

    def _left(self, viewer: Viewer) -> None:
        self._views.pop(viewer, None)
        if not self._views and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _refresh_while_watched(self) -> None:
        try:
            while True:
                begun_s = self._broker.clock.monotonic()
                await self._refresh()
                passed_s = self._broker.clock.monotonic() - begun_s
                # A look that took longer than that is not made up for.
                await self._broker.clock.sleep(INTERVAL_SECONDS - passed_s % INTERVAL_SECONDS)
        except Exception:
            # The top frame: a bug ends the streams, and no more.
            logger.exception("console refresh failed viewers=%d", len(self._views))
            self._looking = None
            for viewer in list(self._views):
                viewer.abort()

    async def _refresh(self) -> None:
        """Send the changes to all viewers."""
        self._number += 1
        seen: dict[tuple[str, str, str], _State] = {}
        for viewer, view in list(self._views.items()):
            access, states = view.access, {}
            for each in view.watched:
                key = each.text, access.principal, access.host
                if key not in seen:
                    seen[key] = await self._state(each, access)
                states[each.text] = seen[key]
            if not access.login_holds():
                viewer.abort()
            elif viewer in self._views:
                _show(viewer, view, states)

    async def _state(self, watched: Watched, access: Access) -> _State:
        """Return the state of a resource, or the error in its place."""
        names, name = dict(watched.names), text_of(watched.text)
        try:
            check_serving(self._broker)
            watched.route.check_allowed(access, names)
            values = read_query(watched.route.parameters, watched.route.watched_query)
            question = Question(self._broker, self._worst, self._lags, access, names, values)
            async with self._broker.clock.timeout(LOOK_SECONDS):
                state = text_of(await watched.route.answering(question))
        except (KafkaError, TimeoutError) as problem:
            found = problem if isinstance(problem, KafkaError) else _TOO_SLOW
            error = with_leader(found, self._broker.view)
            shown = text_of(Error(error.code.name, error.message))
            return self._event("refused", f'{{"watch":{name},"error":{shown}}}', shown)
        # Every shape begins with the time, which always changes.
        lasting = state.partition(",")[2]
        return self._event("state", f'{{"watch":{name},"state":{state}}}', lasting)

    def _event(self, kind: str, data: str, lasting: str) -> _State:
        return _State(f"id: {self._number}\nevent: {kind}\ndata: {data}\n\n", lasting)


def _show(viewer: Viewer, view: _View, states: Mapping[str, _State]) -> None:
    """Send the changes to a viewer in one piece: the next one waits until it is read."""
    view.quiet_seconds += 1
    changed = [name for name, state in states.items() if view.shown.get(name) != state.lasting]
    text = "" if view.shown else BEGIN
    text += "".join(states[name].event for name in changed)
    if not text and view.quiet_seconds >= COMMENT_SECONDS:
        text = COMMENT
    if text and viewer.show(text):
        view.shown.update({name: states[name].lasting for name in changed})
        view.quiet_seconds = 0
