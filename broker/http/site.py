"""What the HTTP port answers: pages by path, behind the checks that every request passes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from barnabas.broker.http.answer import Answer, text
from barnabas.broker.http.guard import HostCheck, check_origin
from barnabas.broker.http.login import HttpLogin
from barnabas.broker.http.request import BadRequest, Request

Page: TypeAlias = Callable[[], Answer]
READING: Final = ("GET", "HEAD")


class Site:
    """The pages of one port."""

    def __init__(
        self, pages: Mapping[str, Page], host_check: HostCheck, login: HttpLogin | None
    ) -> None:
        """Without ``login`` nobody is asked who it is: for a port of this machine alone."""
        self._pages = pages
        self._host_check = host_check
        self._login = login

    def answer(self, request: Request, peer_host: str) -> Answer | Awaitable[Answer]:
        """Return the answer to a request, or what will."""
        try:
            self._host_check.check(request)
            check_origin(request)
        except BadRequest as refused:
            return text(refused.status, str(refused), refused.headers)
        verdict = None if self._login is None else self._login.judge(request, peer_host)
        if verdict is None:
            return self._page(request)
        if isinstance(verdict, Answer):
            return verdict
        return self._page_later(request, verdict)

    async def _page_later(self, request: Request, verdict: Awaitable[Answer | None]) -> Answer:
        return await verdict or self._page(request)

    def _page(self, request: Request) -> Answer:
        page = self._pages.get(request.path)
        if page is None:
            return text(404, "not found; what is here: " + " ".join(self._pages))
        if request.method not in READING:
            return text(405, "only GET and HEAD", {"Allow": ", ".join(READING)})
        return page()
