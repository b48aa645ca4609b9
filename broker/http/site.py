"""Pages of the HTTP port by path, after the checks that every request passes.

Paths below ``CONSOLE`` belong to the console, which is loaded with the first request for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.http.messages.answer import Answer, text
from barnabas.broker.http.messages.request import BadRequest, Request
from barnabas.broker.security.acls.access import OPEN, Access, open_from
from barnabas.broker.security.acls.operations import CLUSTER_NAME, Operation, ResourceType
from barnabas.broker.security.web.guard import HostCheck, check_origin

if TYPE_CHECKING:
    from barnabas.broker.security.web.login import HttpLogin

Page: TypeAlias = Callable[[], Answer]
ConsolePage: TypeAlias = Callable[[Request, Access], Answer | Awaitable[Answer]]
READING: Final = ("GET", "HEAD")

SCREENS: Final = (
    "topics",
    "groups",
    "transactions",
    "pipelines",
    "clients",
    "storage",
    "settings",
    "security",
    "events",
)
"""First parts of the paths of the console's screens; the screen at the root has none."""
CONSOLE: Final = frozenset(((), ("api",), ("assets",), *((each,) for each in SCREENS)))
"""First parts of the paths that are the console's."""
SESSION: Final = "/api/v1/session"
"""Path at which a browser logs in and out."""
NEEDS: Final = {"/config": Operation.DESCRIBE_CONFIGS}
"""Permission on the cluster that a page requires; DESCRIBE for the others."""


@dataclass(frozen=True, slots=True)
class Doors:
    """Authentication of pages and console; without one, every user may read everything."""

    pages: HttpLogin | None = None
    """Authentication for pages: required if a token is configured, or if other machines can reach
    the port."""
    console: HttpLogin | None = None
    """Authentication for the console: also required if clients of the listeners have to log in."""

    @property
    def closed_reason(self) -> str | None:
        """Return the reason why every login at the console fails, or ``None`` without one."""
        return None if self.console is None else self.console.ways.closed_reason


class Site:
    """The pages of one port."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        host_check: HostCheck,
        doors: Doors,
        open_console: Callable[[], Coroutine[None, None, ConsolePage]] | None = None,
    ) -> None:
        """``open_console`` makes the console, once, at the first request for it."""
        self._pages = pages
        self._host_check = host_check
        self._doors = doors
        self._open_console = open_console
        self._opening: asyncio.Task[ConsolePage] | None = None

    def answer(self, request: Request, peer_host: str) -> Answer | Awaitable[Answer]:
        """Return the response to a request, or an awaitable of it."""
        try:
            self._host_check.check(request)
            check_origin(request)
        except BadRequest as refused:
            return text(refused.status, str(refused), refused.headers)
        if self._is_the_page(request):
            return self._page(request, OPEN)  # There is nothing in it but a form to log in with.
        door = self._doors.console if self._is_consoles(request) else self._doors.pages
        if door is not None and request.path == SESSION and request.method in {"POST", "DELETE"}:
            return door.session(request, peer_host)
        verdict = open_from(peer_host) if door is None else door.judge(request, peer_host)
        if isinstance(verdict, Access):
            return self._page(request, verdict)
        if isinstance(verdict, Answer):
            return verdict
        return self._page_later(request, verdict)

    async def _page_later(self, request: Request, pending: Awaitable[Access | Answer]) -> Answer:
        verdict = await pending
        if isinstance(verdict, Answer):
            return verdict
        answer = self._page(request, verdict)
        return answer if isinstance(answer, Answer) else await answer

    def _is_the_page(self, request: Request) -> bool:
        return self._is_lost(request) or (
            self._is_consoles(request) and request.parts[:1] != ("api",)
        )

    def _is_consoles(self, request: Request) -> bool:
        return self._open_console is not None and request.parts[:1] in CONSOLE

    def _is_lost(self, request: Request) -> bool:
        """Return whether a browser wants a page that does not exist: the console shows links."""
        return (
            self._open_console is not None
            and request.method in READING
            and request.path not in self._pages
            and request.parts[:1] not in CONSOLE
            and "text/html" in request.headers.get("accept", "")
        )

    def _page(self, request: Request, access: Access) -> Answer | Awaitable[Answer]:
        if self._is_consoles(request) or self._is_lost(request):
            return self._console_page(request, access)
        page = self._pages.get(request.path)
        if page is None:
            return text(404, "not found; what is here: " + " ".join(self._pages))
        if request.method not in READING:
            return text(405, "only GET and HEAD", {"Allow": ", ".join(READING)})
        operation = NEEDS.get(request.path, Operation.DESCRIBE)
        if not access.may(operation, ResourceType.CLUSTER, CLUSTER_NAME):
            words = f"{access.principal} lacks {operation.name} on Cluster:{CLUSTER_NAME}"
            return text(403, words)
        return page()

    def _console_page(self, request: Request, access: Access) -> Answer | Awaitable[Answer]:
        opening = self._opening
        if opening is not None and opening.done():
            return opening.result()(request, access)
        return self._console_page_later(request, access)

    async def _console_page_later(self, request: Request, access: Access) -> Answer:
        if self._opening is None:
            assert self._open_console is not None
            self._opening = asyncio.get_running_loop().create_task(self._open_console())
        console = await asyncio.shield(self._opening)  # Others may wait for it, too.
        answer = console(request, access)
        return answer if isinstance(answer, Answer) else await answer
