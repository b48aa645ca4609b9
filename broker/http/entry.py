"""Access to the HTTP port, and the permitted changes, by the broker's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.http.site import Doors
from barnabas.broker.network.socket_server import resolve
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.web.guard import HostCheck
from barnabas.broker.security.web.login import HttpLogin, is_loopback
from barnabas.broker.security.web.login_ways import NO_WAY_TO_PAGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.security.acls.access import Generation
    from barnabas.broker.security.acls.authorizer import Authorizer
    from barnabas.broker.security.audit import AuditLog
    from barnabas.broker.security.principals import Principal
    from barnabas.broker.security.sasl.failed_logins import FailedLogins
    from barnabas.broker.security.sasl.passwords import Passwords


class HttpEntry:
    """Decides that for one address."""

    def __init__(self, config: BrokerConfig, host: str, authorizer: Authorizer | None) -> None:
        """Create the entry; ``host`` is the configured host, or empty for every interface."""
        self._config = config
        self._host = host
        self._authorizer = authorizer
        self._is_loopback = is_loopback(address for _, address in resolve(host))

    def start_warning(self, doors: Doors) -> str | None:
        """Return the warning about the console for the log, or ``None`` if none is due."""
        closed_reason = doors.closed_reason
        if closed_reason is not None and self._config.console_access == "none":
            return NO_WAY_TO_PAGES if doors.pages is not None else None
        if closed_reason is not None:
            return closed_reason
        reason = self.read_only_reason()
        if self._config.console_access != "auto" or reason is None:
            return None
        return f"the console is {reason} (barnabas.console.access)"

    def read_only_reason(self) -> str | None:
        """Return the reason why changes are refused here, or ``None`` if they are not."""
        if self._config.console_access == "read":
            return "read-only: barnabas.console.access is read"
        if self._config.console_access == "write" or self._asks_for_users() or self._is_loopback:
            return None
        return "read-only: others can reach this port, and no listener asks who its clients are"

    def host_check(self) -> HostCheck:
        """Return the names that this port may be called by."""
        endpoints = self._config.endpoints
        advertised = [each.advertised[0] for each in endpoints if each.advertised]
        bound = [each.host for each in endpoints]
        names = [*self._config.http_allowed_hosts, *advertised, *bound, self._host]
        # Others than this machine need a token or a user for /metrics, see ``doors``.
        return HostCheck(names, metrics_by_any_name=not self._is_loopback)

    def doors(self, new_login: Callable[[], HttpLogin]) -> Doors:
        """Return the pages that require authentication.

        A configured token is required everywhere: other users of this machine are strangers, too.
        """
        has_token = self._config.http_bearer_token is not None
        if has_token or not self._is_loopback:
            login = new_login()
            return Doors(pages=login, console=login)
        if self._asks_for_users():
            return Doors(console=new_login())
        return Doors()

    def new_login(
        self,
        clock: Clock,
        passwords: Passwords,
        failed_logins: FailedLogins,
        generation: Generation,
        audit: AuditLog,
        is_recovered: Callable[[], bool],
    ) -> HttpLogin:
        """Return the authentication of HTTP requests; see ``HttpLogin``."""

        def new_access(principal: Principal, host: str) -> Access:
            return Access(str(principal), host, self._authorizer, generation)

        return HttpLogin(
            clock=clock,
            token=self._config.http_bearer_token,
            passwords=passwords,
            failed_logins=failed_logins,
            new_access=new_access,
            audit=audit,
            is_recovered=is_recovered,
        )

    def _asks_for_users(self) -> bool:
        return self._authorizer is not None or any(e.has_login for e in self._config.endpoints)
