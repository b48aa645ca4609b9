"""The wall around the driver: a statement for whichever server is the primary, until it answers.

Rules of this file:

1. Each statement is its own transaction, but for those of ``attempt``; either may be executed any
   number of times: the outcome of one that was not answered is unknown, so it is executed again, on
   a new connection.
2. Nothing is ever cancelled, by nobody: a cancelled commit is visible without being replicated. A
   server is left that neither takes nor sends a byte within ``patience_s``: the socket is closed
   under it. So is one that is silent while another takes writes: it was replaced, whatever has
   become of it. Over a slow link an answer takes as long as it takes, or it would be begun again
   and again; so does a flush, which lies in buffers of the system until the server's confirms it.
   What a server is too slow to read is asked for in smaller pieces (``execute``).
3. Whatever the driver raises means unknown, but for what the server says before it commits anything
   and would say again (``_FINAL``), if it can still commit: a former primary that lives on does not
   know what has happened since, and waits for its standby. So does an answer that came with a
   WARNING: "canceling wait for synchronous replication" comes with a success. A damaged page
   (``_DAMAGED``) is final for who can do without what lies there; all others wait for its repair.
   An error of the server's disk, or within the server (``_FAILING``), may pass, and may be that of
   one page, so it is final for the same callers, once it has come ``READS_MOST`` times. That a
   file may not be opened (EACCES, EROFS) has the code of what a role may not do: who says so tells.
4. Every connection is judged before it is used (``storage/postgresql/durability.py``). A server
   that is found lacking after the start is waited for, as one that is away. One that has lost what
   it had confirmed is not used any more (``storage/postgresql/failover_check.py``).
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

from barnabas.storage.errors import StoreDamaged, StoreUnusable
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
from barnabas.storage.replicated.log_index import IndexClosed, IndexMisused
from barnabas.storage.runtime.clock import monotonic
from barnabas.storage.runtime.threads import new_event, new_lock

Result = TypeVar("Result")
Row = tuple[Any, ...]

PATIENCE_S: Final = 5.0
PREPARING_PATIENCE_S: Final = 600.0
"""For what is done once, such as a migration of large tables, or waiting for another broker's."""
NO_ANSWER: Final = "no answer in time"
QUIET_S: Final = 1.0
"""After so long without an answer it is looked for another server that takes writes."""
PAUSE_S_MIN: Final = 0.02
PAUSE_S_MAX: Final = 1.0
LOOK_S: Final = 0.1
"""So often a wait looks whether it was ended."""

READS_MOST: Final = 6
"""So often is read what the server fails to read, within some half a second; whoever asked reads it
again much later."""

_FINAL: Final = ("22", "23", "2B", "3D", "3F", "42", "BB")
"""Classes of errors that come again however often one asks, and never with a commit."""

_DAMAGED: Final = ("XX001", "XX002")
"""Bytes of a table, or of an index, are not what the server has written."""

_FAILING: Final = ("58", "XX000")
"""What disk and files of a server answer (58030: EIO), and what it did not expect of itself."""

_NOT_ALLOWED: Final = "42501"
"""What the operator has not granted to our role; and what the system denies the server's files."""
_WATCHES_RIGHTS: Final = ("aclchk.c", "execMain.c", "guc.c", "rls.c")
"""Where the server says the first. It says the second wherever it opens, reads or writes a file."""

_UNUSABLE: Final = "BB002"
"""Raised by functions of ours: this cluster is not to be served now."""

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
"""What the operator's address says instead counts. At random, since an old primary that does not
know yet that it was replaced may be the first of several hosts."""

# Not all servers know all of them. An attempt that was left while it waited for a lock ends by
# itself, or there would be one more each time; one that waits for a standby goes on.
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
    """A server answered, but with a warning."""


class _Connection(psycopg.Connection[Row]):
    """A connection on which every wait ends, and by which nothing is cancelled."""

    attend: Callable[[], None]
    """Called again and again while a wait lasts; raises to end it."""
    went_on: Callable[[], None] = staticmethod(lambda: None)
    """Called when something has come or gone, be it from the system's buffers."""

    def wait(
        self, gen: PQGen[Result], interval: float = LOOK_S, timeout: float | None = None
    ) -> Result:
        """Wait for the server. The driver's own would send a cancel on Ctrl-C."""
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
                    self.went_on()
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
    return error.sqlstate[:2] in _FINAL and not _is_failing(error)


def _is_damage(error: Exception) -> bool:
    return isinstance(error, psycopg.Error) and error.sqlstate in _DAMAGED


def _is_failing(error: Exception) -> bool:
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return False
    if error.sqlstate == _NOT_ALLOWED:
        return (error.diag.source_file or _WATCHES_RIGHTS[0]) not in _WATCHES_RIGHTS
    return error.sqlstate.startswith(_FAILING)


def _raised(error: Exception) -> Exception:
    """Return what the caller is told of an error that comes again however often one asks."""
    if isinstance(error, psycopg.Error) and error.sqlstate == _UNUSABLE:
        return StoreUnusable(error.diag.message_primary or str(error))
    if _is_damage(error) or _is_failing(error):
        return StoreDamaged(_in_words(error))
    if isinstance(error, psycopg.Error) and error.sqlstate == _NOT_ALLOWED:
        return StoreUnusable(f"{_in_words(error)} (error {_NOT_ALLOWED})")
    code = error.sqlstate if isinstance(error, psycopg.Error) else None
    return IndexMisused(f"{_in_words(error)} (error {code})" if code else _in_words(error))


def _in_words(error: Exception) -> str:
    """Return what an operator is told of an error, in one line: not which statement met it."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    words = " ".join((said or str(error)).split()) or type(error).__name__
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

        ``is_known``: this process has started on this address before. What it found then holds for
        as long as it lives: a newer release may have migrated the tables since. ``witness`` is that
        of all connections of the broker; None: of this one alone.
        """
        self.witness = Witness() if witness is None else witness
        """Is to be told of what was confirmed."""
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
        """Under way while an answer is waited for."""
        self._again_s = AGAIN_S_MIN
        """What the last search has come to, if it has found none."""
        self._started = ""
        """When the server was that the connection is to: no two are in the same moment."""
        self._until_s = 0.0
        self._quiet_until_s = math.inf
        self._goes_on_s = 0.0
        """So much longer it may take whenever something has come or gone."""
        self._silence = NO_ANSWER
        """The reason for a silent connection."""
        self._silences = 0
        """Attempts of this call that were left since no answer came."""
        self._warnings: list[str] = []
        self._is_asked = False
        """Whether the last attempt has come to what the caller wanted."""
        self.took_s = 0.0
        """From the last question to its answer."""
        self.attempts_failed = 0
        """How many attempts were not answered, or were with a warning."""
        self.last_error = ""
        """What the last of them failed by; empty once there was an answer."""

    def start(self, prepare: Callable[[psycopg.Connection[Row]], object]) -> str | None:
        """Wait for a primary, and do what has to be done once; return what to warn of.

        Raises NotDurable. ``prepare`` may be called several times. On an address that is known
        nothing is done but to wait, for a server that is lacking, too.
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
        looks_for_losses: bool = False,
        binary: bool = False,
    ) -> list[Row]:
        """Execute a statement until it is answered, and return the rows.

        Raises IndexClosed, and IndexMisused for what would be answered with the same error again;
        StoreUnusable where that says that the cluster is not to be served, or where the server has
        lost what it had confirmed. ``does_without``: raises StoreDamaged for what cannot be read,
        be it for the moment, in place of waiting until somebody has repaired it.
        ``looks_for_losses``: it is looked for them here, too, and not on new connections alone.
        ``binary``: bytes come as they are, and not as twice as many hexadecimal digits.
        ``arguments`` may depend on how many attempts were left since the server was silent: a
        smaller question is asked in place of the first one, and answered as that.
        """

        def once(connection: psycopg.Connection[Row]) -> list[Row]:
            if looks_for_losses:
                self._look_for_losses(connection)
            given = arguments(self._silences) if callable(arguments) else arguments
            return connection.execute(statement.encode(), given, binary=binary).fetchall()

        return self._repeat(once, does_without=does_without)

    def value(
        self,
        kind: type[Result],
        statement: str,
        *arguments: object,
        looks_for_losses: bool = False,
    ) -> Result:
        """Execute a statement as ``execute`` does, and return its only value."""
        ((value,),) = self.execute(statement, arguments, looks_for_losses=looks_for_losses)
        assert isinstance(value, kind), value
        return value

    def attempt(self, act: Callable[[psycopg.Connection[Row]], Result]) -> Result:
        """Have a transaction done until it is answered, and return its result; as ``execute``.

        Each time it has ``patience_s`` for all of its statements.
        """
        return self._repeat(act)

    def hear(
        self, channel: str, timeout_s: float, is_news: Callable[[str], bool] = lambda _payload: True
    ) -> None:
        """Return when news is notified on a channel, or the time is up, or for no reason.

        That is so when this has just begun to listen: what was notified before was not heard. A
        server that is away notifies nothing. A ``Primary`` that listens is used for nothing else.
        Raises IndexClosed.
        """
        with self._lock:
            try:
                self._hear(channel, timeout_s, is_news)
            except (psycopg.Error, OSError, _Silent, _Warned, NotDurable):
                self._leave()
                if self._closed.wait(timeout_s):
                    raise IndexClosed from None
            except BaseException:
                self._leave()
                raise

    def disconnect(self) -> None:
        """Have the next call look for the primary anew."""
        with self._lock:
            self._leave()

    @property
    def is_closed(self) -> bool:
        """Return whether nothing is executed any more."""
        return self._closed.is_set()

    def close(self) -> None:
        """End the call that waits, and the connection."""
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
                        self.last_error = ""  # It was an answer.
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
        self._look_elsewhere_no_more()
        if self._warnings:
            raise _Warned(self._warnings[0])
        return result

    def _is_confirmed(self) -> bool:
        """Whether a standby confirms a commit here, so that this is no former primary (rule 3)."""
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

    def _hear(self, channel: str, timeout_s: float, is_news: Callable[[str], bool]) -> None:
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
        connection = found or _Connection(self._look_for_one())
        self._connection = connection
        connection.attend = self._attend
        connection.went_on = self._go_on
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
            self._look_for_losses(connection)
        return connection

    def _look_for_losses(self, connection: psycopg.Connection[Row]) -> None:
        self._warnings.clear()
        try:
            self.witness.look(connection)
        except StoreUnusable:
            if self._warnings:  # So no standby has confirmed it.
                raise _Warned(self._warnings[0]) from None
            raise

    def _look_for_one(self) -> PGconn:
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
            self._look_elsewhere(now_s)

    def _go_on(self) -> None:
        if self._goes_on_s:
            self._until_s = max(self._until_s, monotonic() + self._goes_on_s)

    def _look_elsewhere(self, now_s: float) -> None:
        """Look whether another server takes writes by now; raises _Silent where one does."""
        connection = self._connection
        assert connection is not None
        try:
            if self._elsewhere is None:
                self._elsewhere = Search(self._address, but_for=place_of(connection))
            found = self._elsewhere.step(0)
        except psycopg.OperationalError:
            self._look_elsewhere_no_more()
            self._quiet_until_s = now_s + QUIET_S
            return
        if found is not None:
            self._found = self._another(found)
        if self._found is not None:
            raise _Silent("no answer, and another server takes writes")

    def _another(self, found: PGconn) -> _Connection | None:
        """Return a connection to another server that answers; None: it does not, or is the same."""
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
        except (psycopg.Error, _Silent):  # No better than the one that is asked.
            other.close()
        except BaseException:
            other.close()
            raise
        self._look_elsewhere_no_more()
        self._quiet_until_s = monotonic() + QUIET_S
        return None

    def _look_elsewhere_no_more(self) -> None:
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
        self._look_elsewhere_no_more()
