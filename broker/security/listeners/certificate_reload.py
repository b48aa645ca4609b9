"""Replacement of certificates while the broker runs.

A listener reloads its stores in three cases: after a change of their files, which is checked every
few seconds (Kubernetes changes a link, others the file), after SIGHUP, and after a client has
altered ``listener.name.<name>.ssl.*``. The new context is built and tested before it replaces the
old one. If it cannot be built, the old one stays, and a metric and the log report the problem.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.listeners.tls import ListenerTls, refused_by, settings_of
from barnabas.broker.security.tls.certificates import describe_time
from barnabas.broker.security.tls.errors import TlsError
from barnabas.storage.runtime.clock import now_seconds

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.security.tls.server import ServerSettings, ServerTls

logger = logging.getLogger("barnabas.broker.security.listeners.certificate_reload")

LOOK_INTERVAL_MS: Final = 10_000
"""Interval, in milliseconds, between checks of the files."""

Aside = Callable[[Callable[[], object], Callable[[], None]], None]
"""Runs a function on a thread, and then another one on the event loop."""


class CertificateReload:
    """Reloads of the stores of all listeners."""

    def __init__(self, listeners: Iterable[ListenerTls], aside: Aside) -> None:
        self.listeners: Sequence[ListenerTls] = tuple(listeners)
        self._aside = aside
        self._is_looking = False
        self._is_due = False
        """Whether to reload everything after the current reload."""
        self._checked: dict[ListenerTls, ServerTls] = {}
        """Contexts that ``check`` has built, for ``use``."""

    def reload_changed(self) -> None:
        """Reload stores that have changed on disk, or could not be loaded before."""
        self._reload(lambda tls: tls.problem is not None or tls.has_changed())

    def reload(self) -> None:
        """Reload all stores."""
        if self._is_looking:
            self._is_due = True
        else:
            self._reload(lambda _tls: True)

    def check(self, config: BrokerConfig, *, is_same: bool) -> None:
        """Raise ConfigError if a listener could not use the settings that a client wants to set.

        ``is_same``: the client sets the current values, which requests a reload.
        """
        self._checked.clear()
        for tls in self.listeners:
            settings = settings_of(config, tls.endpoint)
            if settings != tls.settings or is_same:
                self._checked[tls] = self._made(tls, settings, config)

    def use(self, config: BrokerConfig) -> None:
        """Use the settings that ``check`` has accepted.

        Raises ConfigError if they were set before the broker has started, and cannot be used now.
        """
        for tls in self.listeners:
            settings = settings_of(config, tls.endpoint)
            made = self._checked.pop(tls, None)
            if made is None and settings != tls.settings:
                made = self._made(tls, settings, config)
            if made is not None:
                tls.replace(settings, made)
                _log_replaced(tls)

    # --------------------------------------------------------------------------------- private

    def _made(self, tls: ListenerTls, settings: ServerSettings, config: BrokerConfig) -> ServerTls:
        try:
            return tls.made(settings, now_seconds())
        except TlsError as error:
            raise refused_by(config, tls.endpoint, error) from None

    def _reload(self, wanted: Callable[[ListenerTls], bool]) -> None:
        """Build new contexts on a thread, since reading files can block; use them on the event
        loop.
        """
        if self._is_looking or not self.listeners:
            return
        self._is_looking = True
        results: list[tuple[ListenerTls, ServerSettings, ServerTls | TlsError]] = []

        def make() -> None:
            for tls in self.listeners:
                settings = tls.settings
                if not wanted(tls):
                    continue
                try:
                    results.append((tls, settings, tls.made(settings, now_seconds())))
                except TlsError as error:
                    results.append((tls, settings, error))

        def use() -> None:
            self._is_looking = False
            for tls, settings, made in results:
                if settings != tls.settings:  # A client was quicker.
                    continue
                if isinstance(made, TlsError):
                    _note_failure(tls, made)
                else:
                    tls.replace(settings, made)
                    _log_replaced(tls)
            if self._is_due:
                self._is_due = False
                self.reload()

        self._aside(make, use)


def _note_failure(tls: ListenerTls, error: TlsError) -> None:
    if tls.problem != str(error):
        tls.problem = str(error)
        logger.error(
            "certificates not reloaded, the old ones stay listener=%s reason=%s", tls.name, error
        )


def _log_replaced(tls: ListenerTls) -> None:
    logger.info(
        "certificates reloaded listener=%s subject=%s not_after=%s",
        *(tls.name, tls.subject, describe_time(tls.not_after_s)),
    )
