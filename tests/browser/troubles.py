"""Errors that a browser reports in a page: each of them fails the test."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, ConsoleMessage, WebError

# The console words it differently for each directive; so the tests report it in their own words,
# too.
_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violated: ${event.effectiveDirective}, ${event.blockedURI}`));
"""

BROKER_AWAY = r"net::ERR_|503 \(Service Unavailable\)"
"""Messages while a broker is down, and while it opens its storage, when its port returns 503."""


class Troubles:
    """Errors and warnings of a context's pages: thrown, logged, or against the page's policy."""

    def __init__(self, context: BrowserContext) -> None:
        self._found: list[str] = []
        self._tolerated: list[re.Pattern[str]] = []
        context.add_init_script(_REPORT_VIOLATIONS)
        context.on("console", self._hear)
        context.on("weberror", self._catch)

    def tolerate(self, pattern: str) -> None:
        """Tolerate this message: of a broker that the test kills, for example."""
        self._tolerated.append(re.compile(pattern))

    def take(self) -> list[str]:
        """Return the messages up to now, and clear them."""
        found, self._found = self._found, []
        return [each for each in found if not any(known.search(each) for known in self._tolerated)]

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            where = message.location
            place = f"{where['url']}:{where['lineNumber']}" if where else "somewhere"
            self._found.append(f"{message.type}: {message.text} ({place})")

    def _catch(self, error: WebError) -> None:
        self._found.append(f"thrown: {error.error}")
