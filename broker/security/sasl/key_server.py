"""Keys for tokens from one URL, fetched before the broker listens and periodically after that.

Rules of this file:

* **Only the configured URL is fetched.** Redirects and the environment's proxies are ignored, and
  so are URLs in tokens (CVE-2025-27817).
* **An outage of the key server changes nothing**: the known keys stay valid, and without keys no
  token is valid. The next attempt follows soon.
* A token with an unknown key triggers a fetch, since its issuer may have new keys, but at most once
  in ``UNKNOWN_KEY_MS``: any client can make up keys.
* Fetches run on a thread of their own, one at a time, with limits of time and size.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit

from barnabas.broker.security.sasl.token_keys import KeySet, MalformedKeys
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import start_thread

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock, Timer

logger = logging.getLogger("barnabas.broker.security.sasl.key_server")

KEYS_BYTES_MAX: Final = 1024 * 1024
FETCH_TIMEOUT_S: Final = 10.0
UNKNOWN_KEY_MS: Final = 60_000
SCHEMES: Final = ("file", "http", "https")


class KeysUnavailable(Exception):
    """Failed fetch of the keys, with the reason in one line."""


class KeyServer:
    """Keys of one URL."""

    def __init__(
        self,
        url: str,
        parse: Callable[[bytes], KeySet],
        clock: Clock,
        *,
        refresh_ms: int,
        backoff_ms: int,
        backoff_max_ms: int,
    ) -> None:
        """``parse`` reads a set of keys; raises MalformedKeys."""
        self.keys = KeySet()
        self._url = url
        self._parse = parse
        self._clock = clock
        self._refresh_ms = refresh_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = max(backoff_ms, backoff_max_ms)
        self._wait_ms = backoff_ms
        self._asked_for_unknown_ms: int | None = None
        self._timer: Timer | None = None
        self._problem = ""
        self._is_fetching = False
        self._is_closed = False

    @property
    def is_file(self) -> bool:
        """Whether the keys are in a file."""
        return urlsplit(self._url).scheme == "file"

    async def open(self) -> None:
        """Fetch the keys for the first time; raises KeysUnavailable if a file has none.

        An unavailable server does not prevent the start: the fetch is retried until it succeeds.
        """
        arrived = asyncio.Event()
        self._fetch(arrived.set)
        await arrived.wait()
        if not self.keys:
            if self.is_file:
                raise KeysUnavailable(self._problem)
            logger.error("no token can be verified until there are keys url=%s", self._url)

    def unknown_key(self) -> None:
        """Fetch the keys again, unless an unknown key has caused a fetch a short time ago."""
        now_ms = self._clock.now_ms()
        last_ms = self._asked_for_unknown_ms
        if last_ms is not None and now_ms - last_ms < min(UNKNOWN_KEY_MS, self._refresh_ms):
            return
        self._asked_for_unknown_ms = now_ms
        if not self._is_fetching:
            self._fetch()

    def close(self) -> None:
        """Stop fetching."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    # ------------------------------------------------------------------------------------ private

    def _fetch(self, then: Callable[[], None] = lambda: None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._is_fetching = True
        loop = asyncio.get_running_loop()

        def work() -> None:
            try:
                found: KeySet | str = self._parse(fetch(self._url))
            except (KeysUnavailable, MalformedKeys) as error:
                found = str(error)
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._fetched, found, then)

        # Not a thread of a pool: the process may end while a request is in progress.
        start_thread("barnabas-keys", work)

    def _fetched(self, found: KeySet | str, then: Callable[[], None]) -> None:
        self._is_fetching = False
        if self._is_closed:
            return
        if isinstance(found, str):
            self._problem = found
            logger.warning(
                "keys for tokens cannot be fetched url=%s keys_kept=%d reason=%s",
                self._url,
                len(self.keys),
                found,
            )
            wait_ms, self._wait_ms = self._wait_ms, min(2 * self._wait_ms, self._backoff_max_ms)
        else:
            self.keys = found
            wait_ms, self._wait_ms = self._refresh_ms, self._backoff_ms
        self._timer = self._clock.call_later(wait_ms, self._fetch)
        then()


# -------------------------------------------------------------------------------- on its thread


def fetch(url: str) -> bytes:
    """Return the content of a URL; raises KeysUnavailable."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _read(parts)
    return _get(url, parts.scheme)


def _read(parts: SplitResult) -> bytes:
    try:
        return LocalFileSystem().read_file(unquote(parts.path))
    except OSError as error:
        raise KeysUnavailable(f"{unquote(parts.path)}: {error.strerror}") from error


def _get(url: str, scheme: str) -> bytes:
    from http.client import HTTPException
    from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, Request

    opener = OpenerDirector()  # With no handlers of redirects, proxies and files.
    if scheme == "https":
        import ssl

        opener.add_handler(HTTPSHandler(context=ssl.create_default_context()))
    else:
        opener.add_handler(HTTPHandler())
    deadline = monotonic() + FETCH_TIMEOUT_S
    request = Request(url, headers={"Accept": "application/json"})  # noqa: S310  see SCHEMES
    received = bytearray()
    try:
        response = opener.open(request, timeout=FETCH_TIMEOUT_S)
        assert response is not None
        with response:
            if response.status != 200:
                raise KeysUnavailable(f"the server answers {response.status}")
            while data := response.read1(65536):
                received += data
                if len(received) > KEYS_BYTES_MAX:
                    raise KeysUnavailable(f"more than {KEYS_BYTES_MAX} bytes")
                if monotonic() > deadline:
                    raise KeysUnavailable(f"not there after {FETCH_TIMEOUT_S:g} s")
    except (OSError, HTTPException, ValueError) as error:
        raise KeysUnavailable(str(error) or type(error).__name__) from error
    return bytes(received)
