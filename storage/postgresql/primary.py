"""The wall around the driver: a statement is repeated on any primary until one responds.

Rules of this file:

1. Each statement is its own transaction, except those of ``attempt``; either may be executed any
   number of times. The outcome of a statement without a response is unknown, so it is executed
   again, on a new connection.
2. No statement is ever cancelled: a cancelled commit is visible without being replicated. A server
   that neither takes nor sends a byte within ``patience_s`` is left, by closing the socket. So is a
   silent server while another one takes writes: it was replaced, in any case. A response over a
   slow link has no time limit, since each retry would begin again. Nor has a flush that is still
   in the buffers of the system, until the server's system confirms it. If a server is too slow to
   read, smaller pieces are requested (``execute``).
3. Any error of the driver means that the outcome is unknown. An error is final only if the server
   reports it before a commit and would report it again (``_FINAL``), and if it can still commit: a
   replaced primary that still runs has old data, and waits for its standby. A response with a
   WARNING is unknown, too: "canceling wait for synchronous replication" comes with a success. A
   damaged page (``_DAMAGED``) is final for callers that can do without its content; all others wait
   for its repair. An error of the server's disk, or within the server (``_FAILING``), may pass, or
   concern one page only: for the same callers it is final after ``READS_MOST`` times. A file that
   may not be opened (EACCES, EROFS) has the code of a missing privilege; the source file of the
   error distinguishes them.
4. Every connection is judged before it is used (``storage/postgresql/durability.py``). A server
   that proves unsuitable after the start is awaited, like one that is unavailable. A server that
   has lost confirmed commits is not used any more (``storage/postgresql/failover_check.py``).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg import waiting
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq.abc import PGconn

from barnabas.storage.errors import IndexClosed, StoreDamaged, StoreUnusable
from barnabas.storage.files.linux import unsent_bytes
from barnabas.storage.postgresql.durability import (
    CONFIRM,
    NotDurable,
    judge,
    missing_standby,
    read_durability,
)
from barnabas.storage.postgresql.failover_check import Witness
from barnabas.storage.postgresql.search import AGAIN_S_MIN, Search, place_of
from barnabas.storage.replicated.log_index import IndexMisused
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import new_event, new_lock

Result = TypeVar("Result")
Row = tuple[Any, ...]

PATIENCE_S: Final = 5.0
PREPARING_PATIENCE_S: Final = 600.0
"""Time for work that is done once, such as a migration of large tables, or a wait for another
broker's."""
NO_ANSWER: Final = "no answer in time"
QUIET_S: Final = 1.0
"""Time without a response after which another server that takes writes is searched."""
PAUSE_S_MIN: Final = 0.02
PAUSE_S_MAX: Final = 1.0
LOOK_S: Final = 0.1
"""Interval at which a wait checks whether it was ended."""

READS_MOST: Final = 6
"""Number of attempts at a read that the server fails, within about half a second; the caller
repeats the read much later."""

_FINAL: Final = ("22", "23", "2B", "3D", "3F", "42", "BB", "P0001", "P0004")
"""Errors that every attempt returns again, and never with a commit: classes, and the codes of RAISE
and ASSERT without another one."""

_DAMAGED: Final = ("XX001", "XX002")
"""Errors of a table or an index whose bytes differ from those that the server has written."""

_FAILING: Final = ("58", "XX000")
"""Errors of a server's disk and files (58030: EIO), and internal errors."""

_NOT_ALLOWED: Final = "42501"
"""A privilege that the operator has not granted to the role; or a file that the system denies."""
_WATCHES_RIGHTS: Final = ("aclchk.c", "execMain.c", "guc.c", "rls.c")
"""Source files that report the first. The second is reported where a file is opened, read or
written."""

_UNUSABLE: Final = "BB002"
"""Raised by functions of the schema: this cluster is not to be served now."""

_DEFAULTS: Final = {
    "application_name": "barnabas",
    "connect_timeout": "3",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "load_balance_hosts": "random",
    "target_session_attrs": "read-write",
    "tcp_user_timeout": "10000",
}
"""Default parameters, which the operator's address overrides. The hosts are tried in random order,
since the first one may be a replaced primary that does not know it yet."""

# Not all servers know all of them. An abandoned attempt that waits for a lock ends by itself, or
# their number would grow; one that waits for a standby continues.
_SESSION: Final = """
SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN (
    'statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_session_timeout',
    'idle_in_transaction_session_timeout')
UNION ALL SELECT set_config('client_connection_check_interval', '2000', false)
UNION ALL SELECT set_config('default_transaction_isolation', 'read committed', false)
UNION ALL SELECT set_config('client_encoding', 'UTF8', false)
"""


class _Silent(Exception):
    """A server that did not answer in time."""


class _Warned(Exception):
    """A server responded, with a warning."""


class _Connection(psycopg.Connection[Row]):
    """A connection on which every wait ends, and by which nothing is cancelled."""

    attend: Callable[[], None]
    """Called again and again while a wait lasts; raises to end it."""
    on_progress: Callable[[], None] = staticmethod(lambda: None)
    """Called when bytes were sent or received, even from the system's buffers."""

    def wait(
        self, gen: PQGen[Result], interval: float = LOOK_S, timeout: float | None = None
    ) -> Result:
        """Wait for the server; unlike the driver, do not send a cancel on Ctrl-C."""
        del timeout
        socket = self.pgconn.socket
        return waiting.wait(self._attended(gen, socket), socket, interval=interval)

    def _attended(self, gen: PQGen[Result], socket: int) -> PQGen[Result]:
        try:
            wanted = next(gen)
            unsent = 0
            while True:
                ready = yield wanted
                unsent_before, unsent = unsent, 0 if ready else unsent_bytes(socket)
                if ready or unsent < unsent_before:
                    self.on_progress()
                self.attend()
                wanted = gen.send(ready)
        except StopIteration as stop:
            result: Result = stop.value
            return result


def _is_final(error: Exception) -> bool:
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        # Of the driver's own: arguments that cannot be sent.
        return isinstance(error, (psycopg.DataError, psycopg.ProgrammingError))
    return error.sqlstate.startswith(_FINAL) and not _is_failing(error)


def _is_damage(error: Exception) -> bool:
    return isinstance(error, psycopg.Error) and error.sqlstate in _DAMAGED


def _is_failing(error: Exception) -> bool:
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return False
    if error.sqlstate == _NOT_ALLOWED:
        return (error.diag.source_file or _WATCHES_RIGHTS[0]) not in _WATCHES_RIGHTS
    return error.sqlstate.startswith(_FAILING)


def _raised(error: Exception) -> Exception:
    """Return the caller's exception for an error that a retry cannot correct."""
    if isinstance(error, psycopg.Error) and error.sqlstate == _UNUSABLE:
        return StoreUnusable(error.diag.message_primary or str(error))
    if _is_damage(error) or _is_failing(error):
        return StoreDamaged(_in_words(error))
    if isinstance(error, psycopg.Error) and error.sqlstate == _NOT_ALLOWED:
        return StoreUnusable(f"{_in_words(error)} (error {_NOT_ALLOWED})")
    code = error.sqlstate if isinstance(error, psycopg.Error) else None
    return IndexMisused(f"{_in_words(error)} (error {code})" if code else _in_words(error))


def _in_words(error: Exception) -> str:
    """Return one line about an error for an operator, with its notes and without the statement."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    said = ": ".join([*getattr(error, "__notes__", ()), said or str(error)])
    words = " ".join(said.split()) or type(error).__name__
    if isinstance(error, psycopg.Error) and _is_failing(error):
        return f"its disk fails, or the server itself (error {error.sqlstate}): {words}"
    return words


def _started(connection: _Connection) -> str:
    """Return when the server was started."""
    return str(connection.execute("SELECT pg_postmaster_start_time()::text").fetchone())


class Primary:
    """Executes statements on the primary. One caller at a time; any thread may be that caller."""

    def __init__(
        self,
        address: str,
        *,
        patience_s: float = PATIENCE_S,
        is_known: bool = False,
        witness: Witness | None = None,
    ) -> None:
        """``address`` is a URL or libpq's own form; its hosts may be several.

        With ``is_known`` this process has checked the schema at this address before, and does not
        check it again: a newer release may have migrated the tables since. ``witness`` is shared by
        all connections of the broker; None gives this connection one of its own.
        """
        self.witness = Witness() if witness is None else witness
        """Recorder of confirmed commits."""
        given = conninfo_to_dict(address)
        self._address = make_conninfo("", **(_DEFAULTS | given))
        self.patience_s = patience_s
        self._is_known = is_known
        self._closed = new_event()
        self._lock = new_lock()
        self._connection: _Connection | None = None
        self._found: _Connection | None = None
        """A connection to another server, for which the one before was left."""
        self._elsewhere: Search | None = None
        """The search that runs while a response is awaited, or None."""
        self._again_s = AGAIN_S_MIN
        """Interval between attempts of the last search that has found no server."""
        self._started = ""
        """Start time of the connected server, which distinguishes it from other servers."""
        self._until_s = 0.0
        self._quiet_until_s = math.inf
        self._goes_on_s = 0.0
        """Extra time allowed whenever bytes were sent or received."""
        self._silence = NO_ANSWER
        """The reason for a silent connection."""
        self._silences = 0
        """Number of attempts of this call that were abandoned since the last response."""
        self._warnings: list[str] = []
        self._is_asked = False
        """Whether the last attempt has reached the caller's statement."""
        self.took_s = 0.0
        """Time from the last request to its response."""
        self.attempts_failed = 0
        """Number of attempts without a response, or with a warning."""
        self.last_error = ""
        """Error of the last of them; empty after a response."""

    def start(self, prepare: Callable[[psycopg.Connection[Row]], object]) -> str | None:
        """Wait for a primary, and do the work of a start; return warnings.

        Raises NotDurable, except for an address that is known already: then this waits until a
        server has the required settings. ``prepare`` may be called several times.
        """
        if self._is_known:
            return self._repeat(lambda connection: judge(read_durability(connection)))

        def first(connection: psycopg.Connection[Row]) -> str | None:
            warning = judge(read_durability(connection))
            self._until_s = monotonic() + PREPARING_PATIENCE_S
            prepare(connection)
            return warning

        return self._repeat(first, judged=False)

    def execute(
        self,
        statement: str,
        arguments: Sequence[object] | Callable[[int], Sequence[object]] = (),
        *,
        does_without: bool = False,
        checks_losses: bool = False,
        binary: bool = False,
    ) -> list[Row]:
        """Execute a statement until a server responds, and return the rows.

        Raises IndexClosed; IndexMisused for an error that every attempt would meet; StoreUnusable
        if that error means that the cluster is not to be served, or if the server has lost
        confirmed commits. ``does_without``: raises StoreDamaged for data that cannot be read, even
        temporarily, in place of waiting for a repair. ``checks_losses``: also checks for lost
        commits here, and not on new connections alone. ``binary``: bytes are transferred as they
        are, and not as twice as many hexadecimal digits. ``arguments`` may depend on the number of
        abandoned attempts since the server was silent: then a smaller request replaces the first
        one.
        """

        def once(connection: psycopg.Connection[Row]) -> list[Row]:
            if checks_losses:
                self._check_losses(connection)
            given = arguments(self._silences) if callable(arguments) else arguments
            return connection.execute(statement.encode(), given, binary=binary).fetchall()

        return self._repeat(once, does_without=does_without)

    def value(
        self,
        kind: type[Result],
        statement: str,
        *arguments: object,
        checks_losses: bool = False,
    ) -> Result:
        """Execute a statement as ``execute`` does, and return its only value."""
        ((value,),) = self.execute(statement, arguments, checks_losses=checks_losses)
        assert isinstance(value, kind), value
        return value

    def attempt(self, act: Callable[[psycopg.Connection[Row]], Result]) -> Result:
        """Run a transaction until a server responds, and return its result; as ``execute``.

        Each time it has ``patience_s`` for all of its statements.
        """
        return self._repeat(act)

    def await_news(
        self, channel: str, timeout_s: float, is_news: Callable[[str], bool] = lambda _payload: True
    ) -> None:
        """Return after a notification on a channel or a timeout, or spuriously.

        The last applies to the start of listening: earlier notifications are lost. A server that is
        unavailable notifies nothing. A ``Primary`` that listens is used for nothing else. Raises
        IndexClosed.
        """
        with self._lock:
            try:
                self._await_news(channel, timeout_s, is_news)
            except (psycopg.Error, OSError, _Silent, _Warned, NotDurable):
                self._leave()
                if self._closed.wait(timeout_s):
                    raise IndexClosed from None
            except BaseException:
                self._leave()
                raise

    def disconnect(self) -> None:
        """Make the next call search for the primary again."""
        with self._lock:
            self._leave()

    @property
    def is_closed(self) -> bool:
        """Return whether nothing is executed any more."""
        return self._closed.is_set()

    def close(self) -> None:
        """Cancel the waiting call, and close the connection."""
        self._closed.set()
        with self._lock:
            self._leave()
            self._leave_found()

    def _repeat(
        self,
        act: Callable[[psycopg.Connection[Row]], Result],
        *,
        judged: bool = True,
        does_without: bool = False,
    ) -> Result:
        pause_s = PAUSE_S_MIN
        reads_left = READS_MOST
        with self._lock:
            self._silences = 0
            while True:
                try:
                    result = self._try(act, judged=judged)
                except (psycopg.Error, OSError, _Silent, _Warned, NotDurable) as error:
                    self._silences += self._is_asked and isinstance(error, _Silent)
                    reads_left -= self._is_asked and _is_failing(error)
                    is_unread = _is_damage(error) or (_is_failing(error) and reads_left <= 0)
                    comes_again = _is_final(error) or (does_without and is_unread)
                    is_final = comes_again and self._is_confirmed()
                    self._leave()
                    if isinstance(error, NotDurable) and not judged:
                        raise
                    if is_final:
                        self.last_error = ""  # It was a response.
                        raise _raised(error) from error
                    self.attempts_failed += 1
                    self.last_error = _in_words(error)
                except BaseException:
                    self._leave()
                    raise
                else:
                    self.last_error = ""
                    return result
                if self._closed.wait(pause_s):
                    raise IndexClosed
                pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def _try(self, act: Callable[[psycopg.Connection[Row]], Result], *, judged: bool) -> Result:
        self._is_asked = False
        if self._closed.is_set():
            raise IndexClosed
        connection = self._connection
        if connection is None:
            connection = self._connect(judged=judged)
        self._is_asked = True
        self._warnings.clear()
        begun_s = monotonic()
        self._until_s = begun_s + self.patience_s
        self._quiet_until_s = begun_s + QUIET_S
        self._goes_on_s = self.patience_s
        try:
            result = act(connection)
        finally:
            self._goes_on_s = 0.0
        self.took_s = monotonic() - begun_s
        self._end_search_elsewhere()
        if self._warnings:
            raise _Warned(self._warnings[0])
        return result

    def _is_confirmed(self) -> bool:
        """Return whether a standby confirms a commit: the server is no former primary (rule 3)."""
        connection = self._connection
        if connection is None:
            return True  # What the driver says by itself.
        self._warnings.clear()
        self._until_s = monotonic() + self.patience_s
        try:
            connection.execute(CONFIRM)
        except (psycopg.Error, OSError, _Silent):
            return False
        return not self._warnings

    def _await_news(self, channel: str, timeout_s: float, is_news: Callable[[str], bool]) -> None:
        if self._closed.is_set():
            raise IndexClosed
        connection = self._connection
        if connection is None:
            self._connect(judged=False).execute(f"LISTEN {channel}".encode())
            return
        self._until_s, self._quiet_until_s = monotonic() + timeout_s, math.inf
        with contextlib.suppress(_Silent):
            is_heard = False
            while not is_heard:
                for each in connection.notifies(stop_after=1):
                    is_heard = is_heard or is_news(each.payload)

    def _connect(self, *, judged: bool) -> _Connection:
        found, self._found = self._found, None
        connection = found or _Connection(self._find_server())
        self._connection = connection
        connection.attend = self._attend
        connection.on_progress = self._extend_time
        connection.autocommit = True
        connection.add_notice_handler(self._notice)
        self._until_s = monotonic() + self.patience_s
        self._quiet_until_s = math.inf
        connection.execute(_SESSION)
        self._started = _started(connection)
        if judged:
            durability = read_durability(connection)
            judge(durability)
            self._silence = missing_standby(durability) or NO_ANSWER
            self._quiet_until_s = monotonic() + QUIET_S
            self._check_losses(connection)
        return connection

    def _check_losses(self, connection: psycopg.Connection[Row]) -> None:
        self._warnings.clear()
        try:
            self.witness.check(connection)
        except StoreUnusable:
            if self._warnings:  # So no standby has confirmed it.
                raise _Warned(self._warnings[0]) from None
            raise

    def _find_server(self) -> PGconn:
        """Wait for a connection to a server that takes writes."""
        with Search(self._address, again_s=self._again_s) as search:
            try:
                while (found := search.step()) is None:
                    if self._closed.is_set():
                        raise IndexClosed
            except psycopg.OperationalError:
                self._again_s = search.again_s
                raise
        self._again_s = AGAIN_S_MIN
        return found

    def _attend(self) -> None:
        if self._closed.is_set():
            raise IndexClosed
        now_s = monotonic()
        if now_s > self._until_s:
            raise _Silent(self._silence)
        if now_s > self._quiet_until_s:
            self._search_elsewhere(now_s)

    def _extend_time(self) -> None:
        if self._goes_on_s:
            self._until_s = max(self._until_s, monotonic() + self._goes_on_s)

    def _search_elsewhere(self, now_s: float) -> None:
        """Check whether another server takes writes by now; raises _Silent if so."""
        connection = self._connection
        assert connection is not None
        try:
            if self._elsewhere is None:
                self._elsewhere = Search(self._address, but_for=place_of(connection))
            found = self._elsewhere.step(0)
        except psycopg.OperationalError:
            self._end_search_elsewhere()
            self._quiet_until_s = now_s + QUIET_S
            return
        if found is not None:
            self._found = self._another(found)
        if self._found is not None:
            raise _Silent("no answer, and another server takes writes")

    def _another(self, found: PGconn) -> _Connection | None:
        """Return a connection to another server, or None if none responds."""
        until_s = monotonic() + QUIET_S

        def attend() -> None:
            if self._closed.is_set():
                raise IndexClosed
            if monotonic() > until_s:
                raise _Silent("no answer in time, nor of another server")

        other = _Connection(found)
        other.attend = attend
        try:
            other.autocommit = True
            if _started(other) != self._started:
                return other
            other.close()
        except (psycopg.Error, _Silent):  # No better than the present one.
            other.close()
        except BaseException:
            other.close()
            raise
        self._end_search_elsewhere()
        self._quiet_until_s = monotonic() + QUIET_S
        return None

    def _end_search_elsewhere(self) -> None:
        elsewhere, self._elsewhere = self._elsewhere, None
        if elsewhere is not None:
            elsewhere.close()

    def _leave_found(self) -> None:
        found, self._found = self._found, None
        if found is not None:
            found.close()

    def _notice(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            self._warnings.append(diagnostic.message_primary or "a warning")

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._end_search_elsewhere()
