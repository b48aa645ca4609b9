"""Opening of the HTTP port, with its pages, its logins and the console."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.admin.observed import ObservedBroker
from barnabas.broker.http.entry import HttpEntry
from barnabas.broker.http.pages import pages
from barnabas.broker.http.server import HttpServer
from barnabas.broker.http.site import ConsolePage, Site
from barnabas.broker.network.socket_server import ListenError
from barnabas.broker.runtime.stage import Stage

if TYPE_CHECKING:
    from barnabas.broker.runtime.disk_readers import DiskReaders
    from barnabas.broker.security.acls.access import Generation
    from barnabas.broker.security.acls.authorizer import Authorizer
    from barnabas.broker.security.sasl.logins import Logins
    from barnabas.broker.security.web.login import HttpLogin

logger = logging.getLogger("barnabas.broker.server")


class HttpHost(ObservedBroker, Protocol):
    """Interface of the broker for its HTTP port."""

    authorizer: Authorizer | None
    generation: Generation
    logins: Logins
    readers: DiskReaders


@dataclass(frozen=True, slots=True)
class HttpPort:
    """An open HTTP port, and its effect on the console."""

    server: HttpServer
    asks_for_login: bool
    """Whether the console requires authentication."""
    changes_refused: str | None
    """The reason why changes over HTTP are refused, or None if they are allowed."""
    login_closed_reason: str | None
    """The reason why every login at the console fails, or None if a login can succeed."""


async def open_http(host: HttpHost) -> HttpPort | None:
    """Open the HTTP port; return None if it is switched off, or if its default address is taken.

    Raises ListenError if the configuration names an address that is taken.
    """
    config = host.config
    address = config.http_address
    if address is None:
        return None
    entry = HttpEntry(config, address[0], host.authorizer)
    doors = entry.doors(lambda: _new_login(host, entry))

    async def open_console() -> ConsolePage:
        # On a thread: its code and its files take longer than a turn of the loop may.
        return await host.readers.run(lambda: _new_console(host))

    opens = None if config.console_access == "none" else open_console
    site = Site(pages(host), entry.host_check(), doors, opens)
    server = HttpServer(*address, site.answer, host.clock, host.answer_memory)
    try:
        await server.start(config)
    except ListenError as error:
        error.key = "barnabas.http.listener"
        if error.key in config.settings:
            raise
        logger.error("no /metrics, /livez and /readyz: %s", error)  # noqa: TRY400  one line
        return None
    warning = entry.start_warning(doors)
    if warning is not None:
        logger.warning("%s", warning)
    return HttpPort(
        server, doors.console is not None, entry.read_only_reason(), doors.closed_reason
    )


def _new_console(host: HttpHost) -> ConsolePage:
    # Imported at the first request for a page: most brokers never get one.
    from barnabas.broker.console.application import Console

    return Console(host).answer


def _new_login(host: HttpHost, entry: HttpEntry) -> HttpLogin:
    return entry.new_login(
        host.clock,
        host.logins.passwords(),
        host.sockets.failed_logins.apart(),
        host.generation,
        host.audit,
        lambda: host.stage >= Stage.RECOVERED,
    )
