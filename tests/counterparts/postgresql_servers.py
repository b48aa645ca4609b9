"""PostgreSQL's servers on loopback: one, or a primary with a synchronous standby.

    with Pair() as pair:
        pair.primary.execute("CREATE TABLE t (i int)")
        pair.fail_over()

A server has a temporary directory and removes it at its end. The directory is in memory where there
is room, so that no commit waits for a disk; `kill -9` of a server loses nothing there. Every wait
ends.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from tests.counterparts.postgresql import postgresql
from tests.counterparts.probe import HOST, free_port
from tests.counterparts.usage import children
from tests.waiting import wait_until

ROLE = "postgres"
PROGRAM_TIMEOUT_S = 150
STOP_TIMEOUT_S = 150
CONNECT_TIMEOUT_S = 60
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 4 << 30
"""Free bytes for the servers of several tests that run at once, each of up to 200 MB."""
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "shared_buffers": "32MB",
    "max_wal_size": "128MB",
    "wal_keep_size": "64MB",
    "wal_receiver_timeout": "10s",
    "wal_retrieve_retry_interval": "100ms",
    "jit": "off",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] ",
}


class PostgreSqlFailed(Exception):
    """A program of PostgreSQL's did not do what it was started for; the message has its output."""


def own(directory: Path) -> None:
    """Give a directory and all in it to whose processes PostgreSQL's are."""
    user = postgresql().user
    if user is not None:
        for each in (directory, *directory.rglob("*")):
            os.chown(each, user, -1)


def run(*arguments: str | Path, output: Path) -> None:
    """Run one of the programs to its end."""
    process = postgresql().start(*arguments, output=output)
    try:
        status = process.wait(PROGRAM_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        status = None
    if status != 0:
        raise PostgreSqlFailed(f"{arguments[0]} ended {status}: {_last_words(output)}")


def _last_words(output: Path) -> str:
    text = output.read_text("utf-8", "replace") if output.exists() else ""
    return " ".join(text.split())[-2000:]


@functools.cache
def _empty() -> Path:
    """Return the files of an empty server, made once."""
    holder = tempfile.TemporaryDirectory(prefix="postgresql-empty-")
    _KEPT.append(holder)
    directory = Path(holder.name)
    own(directory)
    # Small files of the write-ahead log: they are copied with the rest.
    run("initdb", f"--username={ROLE}", "--auth=trust", "--no-sync", "--encoding=UTF8",
        "--locale=C", "--wal-segsize=1", "--pgdata", directory / "data",
        output=directory / "output")  # fmt: skip
    return directory / "data"


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _in_memory() -> Path | None:
    """Return the directory of files in memory, or None if there is none with enough room."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN:
        return MEMORY
    return None


def _connection_to(primary: Server) -> str:
    return f"host={HOST} port={primary.port} user={ROLE} application_name=standby"


def _signal(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # One that served a connection may have ended.
        os.kill(pid, which)


class Server:
    """One server: made as a new one, or as a copy of another one that then follows it."""

    def __init__(self, *, in_memory: bool = True, **settings: str) -> None:
        """``in_memory``: keep the files in memory where there is room."""
        self._temporary = tempfile.TemporaryDirectory(
            prefix="postgresql-data-", dir=_in_memory() if in_memory else None
        )
        self.directory = Path(self._temporary.name)
        own(self.directory)
        self.data = self.directory / "data"
        self.output = self.directory / "output"
        self.port = free_port()
        self._settings = SETTINGS | settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process whose children are all others of the server."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started, and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def url(self) -> str:
        """The connection URL of clients."""
        return f"postgresql://{ROLE}@{HOST}:{self.port}/postgres"

    def make(self) -> Self:
        """Make an empty server of it. Two that were made so can follow each other."""
        shutil.copytree(_empty(), self.data)
        self._write("postgresql.conf", self._settings | {"port": str(self.port)})
        return self

    def make_standby(self, primary: Server) -> Self:
        """Make it an empty server that follows a primary which was made so, too."""
        self.make()
        self._write("postgresql.auto.conf", {"primary_conninfo": _connection_to(primary)})
        self._write("standby.signal", {})
        return self

    def copy(self, primary: Server) -> Self:
        """Replace the data of this server by a copy of ``primary`` that follows it."""
        shutil.rmtree(self.data, ignore_errors=True)
        run("pg_basebackup", "--dbname", _connection_to(primary), "--pgdata", self.data,
            "--checkpoint=fast", "--wal-method=stream", "--no-sync", "--write-recovery-conf",
            output=self.output)  # fmt: skip
        # Of two lines with one name the last counts.
        self._write("postgresql.conf", {"port": str(self.port)})
        return self

    # -- start and end -----------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it, and wait until it takes connections."""
        self._process = postgresql().start("postgres", "-D", self.data, output=self.output)
        wait_until(self._answers, self.said, seconds=PROGRAM_TIMEOUT_S, pause_s=0.02)
        return self

    def stop(self) -> None:
        """End it in order: what its clients had under way is rolled back."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """End it as a crash does: what follows begins with recovery."""
        self._end(signal.SIGQUIT)

    def pause(self) -> None:
        """Stop all processes of the server: connections stay open, without responses."""
        # First the process that has children: it starts no child after they are listed.
        _signal(self.pid, signal.SIGSTOP)
        for each in children(self.pid):
            _signal(each, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue all processes after ``pause``."""
        for each in (*children(self.pid), self.pid):
            _signal(each, signal.SIGCONT)

    def promote(self) -> None:
        """Promote a standby to accept writes; returns when it does."""
        self.execute("SELECT pg_promote(true, 60)")

    def close(self) -> None:
        """End it and remove what it kept."""
        if self.is_running:
            self.resume()
        if self._process is not None:
            self.crash()
        self._temporary.cleanup()

    def __enter__(self) -> Self:
        """Start the server; initialize it first if it has no data."""
        try:
            if not self.data.exists():
                self.make()
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove it."""
        self.close()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise PostgreSqlFailed(f"did not end by {how.name}: {self.said()}") from None

    # -- statements --------------------------------------------------------------------------------

    def connect(self) -> psycopg.Connection[Any]:
        """Return a connection of the superuser's on which each statement is committed at once."""
        return psycopg.connect(self.url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)

    def execute(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Execute a statement on a connection of its own; return the rows."""
        with self.connect() as connection:
            cursor = connection.execute(statement.encode(), arguments or None)
            return cursor.fetchall() if cursor.description else []

    def set(self, **settings: str) -> None:
        """Change settings that need no restart, and wait until new connections have them."""
        with self.connect() as connection:
            for name, value in settings.items():
                statement = psycopg.sql.SQL("ALTER SYSTEM SET {} = {}")
                connection.execute(
                    statement.format(psycopg.sql.Identifier(name), psycopg.sql.Literal(value))
                )
            connection.execute("SELECT pg_reload_conf()")
        for name, value in settings.items():
            self.wait_for(f"SELECT current_setting('{name}') = '{value}'")

    def wait_for(self, question: str) -> None:
        """Wait until the answer to a question is yes."""
        with self.connect() as connection:
            wait_until(
                lambda: connection.execute(question.encode()).fetchone() == (True,), question
            )

    def terminate_waiting(self) -> None:
        """Terminate backends that wait for a standby: unreplicated commits become visible."""
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        )

    # -- details -----------------------------------------------------------------------------------

    def _write(self, name: str, settings: dict[str, str]) -> None:
        with (self.data / name).open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        own(self.data)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise PostgreSqlFailed(f"ended {self._process.returncode}: {self.said()}")
        try:
            return self.execute("SELECT true") == [(True,)]
        except psycopg.OperationalError:
            return False

    def said(self) -> str:
        """Return the last of what it and the programs for it have said."""
        return _last_words(self.output)


class Pair:
    """A primary and its standby, which confirms each commit unless ``synchronous`` is False."""

    def __init__(
        self, *, synchronous: bool = True, in_memory: bool = True, **settings: str
    ) -> None:
        self._synchronous = synchronous
        self._stack = ExitStack()
        self.primary = Server(in_memory=in_memory, **settings)
        self.standby = Server(in_memory=in_memory, **settings)

    @property
    def url(self) -> str:
        """The connection URL that names both servers: clients use the one that accepts writes."""
        hosts = ",".join(
            f"{HOST}:{server.port}"
            for server in sorted((self.primary, self.standby), key=lambda each: each.port)
        )
        return f"postgresql://{ROLE}@{hosts}/postgres?target_session_attrs=read-write"

    def __enter__(self) -> Self:
        """Start both."""
        with ExitStack() as stack:
            stack.callback(self.primary.close)
            stack.callback(self.standby.close)
            self.primary.make().start()
            self.standby.make_standby(self.primary).start()
            self._wait_for_standby()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove both."""
        self._stack.close()

    def keep_output(self, directory: Path) -> None:
        """Copy what both have said so far into a directory that stays."""
        for server in (self.primary, self.standby):
            shutil.copyfile(server.output, directory / f"postgresql-{server.port}.log")

    def follow(self) -> None:
        """Make the standby a new copy of the primary, and have it confirm commits."""
        if self._synchronous:
            # Before anything follows: brokers refuse to start beside an asynchronous standby.
            self.primary.set(synchronous_standby_names="*")
        self.standby.stop()
        self.standby.copy(self.primary).start()
        self._wait_for_standby()

    def fail_over(self) -> None:
        """The primary crashes; the standby takes its place, and is followed by it."""
        self.primary.crash()
        self._promote()
        self.follow()

    def split(self) -> Server:
        """The standby takes the primary's place, which lives on; returns that old primary."""
        self._promote()
        return self.standby

    def cut(self) -> None:
        """End the replication: the standby hears nothing more of the primary."""
        self.standby.set(primary_conninfo="")
        self.primary.wait_for("SELECT count(*) = 0 FROM pg_stat_replication")

    def mend(self) -> None:
        """Connect the standby to the primary again after ``cut``."""
        self.standby.set(primary_conninfo=_connection_to(self.primary))
        self._wait_for_standby()

    def _wait_for_standby(self) -> None:
        self.primary.wait_for(
            "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'"
        )
        if self._synchronous:
            self.primary.set(synchronous_standby_names="*")
            self.primary.wait_for("SELECT bool_or(sync_state = 'sync') FROM pg_stat_replication")

    def _promote(self) -> None:
        self.standby.promote()
        self.take_over()

    def take_over(self) -> None:
        """Swap the roles after the standby was promoted."""
        self.primary, self.standby = self.standby, self.primary
        # A copy has the settings of its original; no standby follows it yet.
        self.primary.set(synchronous_standby_names="")
