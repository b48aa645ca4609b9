"""The clients as processes: start, pause, kill, start again; told apart by role and library."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.checkout import PYTHONPATH
from tests.history.model import COMMITTED, UNCOMMITTED
from tests.workload.access import Access
from tests.workload.settings import HUNG_EXIT_CODE, Kind, Settings

STOP_S = 90


KINDS = (
    Kind("writer", "confluent"),
    Kind("writer", "kafka_python"),
    Kind("writer", "aiokafka"),
    Kind("writer", "java"),
    # Two with one id, which fence each other all the time.
    Kind("writer", "confluent", "duel"),
    Kind("writer", "aiokafka", "duel"),
    Kind("sender", "confluent"),
    Kind("transformer", "confluent"),
    Kind("transformer", "kafka_python"),
    Kind("transformer", "java", consumer="kafka_python"),
    Kind("reader", "confluent", isolation=COMMITTED),
    Kind("reader", "kafka_python", isolation=COMMITTED),
    Kind("reader", "confluent", isolation=UNCOMMITTED),
)
"""Clients of a torture, by libraries."""
WIRE_KINDS = (Kind("writer", "wire"), Kind("transformer", "wire_classic"))
"""Clients by wire, which cannot log in."""

QUICK_KINDS = (
    Kind("writer", "confluent", "duel"),
    Kind("writer", "kafka_python"),
    Kind("writer", "aiokafka", "duel"),
    Kind("writer", "java"),
    Kind("sender", "confluent"),
    Kind("transformer", "confluent"),
    Kind("transformer", "kafka_python"),
    Kind("reader", "confluent", isolation=COMMITTED),
    Kind("reader", "confluent", isolation=UNCOMMITTED),
)


class Member:
    """One place in the fleet, and the processes that have had it, one after the other."""

    def __init__(self, kind: Kind, name: str, access: Access, directory: Path, seed: int) -> None:
        self.kind = kind
        self.name = name
        self.is_paused = False
        self.ended: Counter[str] = Counter()
        """The number of its processes that ended by themselves, by the kind of end."""
        self.journals: list[Path] = []
        self._access = access
        self._directory = directory
        self._seed = seed
        self._errors = directory / f"{name}.stderr"
        self._process: subprocess.Popen[bytes] | None = None
        self._was_killed = False
        self._older: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the next process: same transactional id, other values."""
        number = len(self.journals)
        name = f"{self.name}.{number}"
        journal = self._directory / f"{name}.events"
        journal.touch()
        self.journals.append(journal)
        settings = Settings.of(
            self.kind,
            name,
            self._access.servers,
            self._seed + number,
            journal=str(journal),
            transactional_id=self.kind.transactional_id or self.name,
            login=self._access.login,
        )
        command = [sys.executable, "-m", "tests.workload.run_client", settings.as_json()]
        self.is_paused = self._was_killed = False
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                # With what it starts itself: a JVM is to be paused and killed with it.
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": PYTHONPATH},
            )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None and not self.is_paused

    @property
    def has_twin(self) -> bool:
        return bool(self._older)

    def _may_end_with(self, code: int) -> bool:
        """Return whether its library may end it: by a signal, or by an unexpected error.

        Its operations are in the journal anyway. But a reader or a sender that raises an error got
        a response that it must not get, unless permissions are removed.
        """
        may_fail = self.kind.role in {"writer", "transformer"} or self._access.loses_rights
        return code <= 0 or code == HUNG_EXIT_CODE or may_fail

    def restart_if_ended(self) -> None:
        """Start again who was killed, hung or fell over its library, as a supervisor would."""
        assert self._process is not None, "not started"
        code = self._process.poll()
        if code is None:
            return
        assert self._was_killed or self._may_end_with(code), self.unexpected_end()
        if not self._was_killed:
            how = "hung" if code == HUNG_EXIT_CODE else f"ended with {code}: {self._last_words()}"
            self.ended[how] += 1
        self.start()

    def add_twin(self) -> None:
        """Keep the process running, and start another one with the same id."""
        assert self._process is not None, "not started"
        self._older.append(self._process)
        self.start()

    def kill(self) -> None:
        """Kill -9 the process and its twins."""
        for process in self._processes():
            _kill(process)
        self._was_killed = True
        self._older.clear()

    def pause(self) -> None:
        """Stop it in its tracks; it believes that no time passes."""
        self._signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self.is_paused = False

    def ask_to_stop(self) -> None:
        """SIGTERM: end what is being done, and the process."""
        self.resume()
        for process in self._processes():
            # The client alone: it needs its JVM for the end of what it does.
            process.terminate()

    def wait_until_gone(self) -> None:
        """Wait for the end after `ask_to_stop`; kill and count a process that hangs."""
        for process in self._processes():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.ended["hung"] += 1
                _kill(process)

    def unexpected_end(self) -> str | None:
        """Return the description of an unexpected end of the process."""
        assert self._process is not None, "not started"
        code = self._process.poll()
        if code is None or self._was_killed or self._may_end_with(code):
            return None
        words = self._errors.read_text(errors="replace")[-2000:]
        return f"{self.name} ended with {code}: {words}"

    def _last_words(self) -> str:
        """Return the last line of what its processes had to say: the error, if one ended it."""
        return "".join(self._errors.read_text(errors="replace").splitlines()[-1:])

    def _processes(self) -> list[subprocess.Popen[bytes]]:
        return [*self._older, *([self._process] if self._process else [])]

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes():
            if process.poll() is None:
                os.killpg(process.pid, number)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill -9 a process and its children, which may have outlived it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Fleet:
    """`with Fleet(...) as fleet:` all members, which end with it."""

    def __init__(
        self, access: Access, directory: Path, seed: int, kinds: Sequence[Kind] = KINDS
    ) -> None:
        self.members = [
            Member(
                kind,
                f"{kind.role}-{kind.library}-{number}",
                access,
                directory,
                1000 * seed + 100 * number,
            )
            for number, kind in enumerate(kinds)
        ]

    def of(self, *roles: str) -> list[Member]:
        """Return the members with one of these roles."""
        return [member for member in self.members if member.kind.role in roles]

    def journals(self) -> list[Path]:
        return [path for member in self.members for path in member.journals]

    def __enter__(self) -> Self:
        try:
            for member in self.members:
                member.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        for member in self.members:
            member.kill()
