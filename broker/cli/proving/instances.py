"""Instances of the user's program: processes that are started, killed, paused and replaced."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.proving.guard import NAME, VARIABLE, kill_all, signal_all
from barnabas.broker.cli.proving.timeline import Timeline
from barnabas.storage.files.io import private_opener
from barnabas.storage.runtime.clock import monotonic, sleep

SERVERS, INSTANCE, PROPERTIES = "{servers}", "{instance}", "{properties}"
DIRECTORY = "{directory}"
"""Texts in the program's arguments that the command replaces."""
_STOPS_S: Final = 10.0
_INTERVAL_S: Final = 0.02
_SHOWN_CHARACTERS: Final = 1500
_OUTPUT_BYTES_MAX: Final = 16 << 20
"""Output of an instance after which it is emptied, at the next check."""
_RESTARTS_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Times before a program that ends by itself is started again, the longest one repeatedly."""
_OF_CHILDREN: Final = frozenset({signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT})
"""Signals that children get, too, when they have a session of their own."""
_RUNS_S: Final = 5.0
"""Time after which a process has run well."""


class Process:
    """One process of an instance, named ``1``; its successors are ``1b``, ``1c``, up to ``1z``."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], mark: str) -> None:
        """``mark``: value of the variable ``NAME`` in the environment of the process."""
        self.name = name
        self.started_s = monotonic()
        self.is_paused = False
        self.was_killed = False
        self._process = process
        self.mark = mark

    @property
    def pid(self) -> int:
        """Process ID, which is also that of its session."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code, or ``None`` while it runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process and to its children."""
        if self.exit_code is None or number == signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
        seen: set[int] = set()
        while number in _OF_CHILDREN and (found := signal_all(NAME, self.mark, number) - seen):
            seen |= found  # A child may have started another one meanwhile.

    def kill(self) -> None:
        """Kill -9 the process and its children, and wait for the end."""
        self.was_killed = True
        self.send(signal.SIGKILL)
        self._process.wait()
        kill_all(NAME, self.mark)

    def stop(self) -> None:
        """Send SIGTERM, and kill the process if it has not ended in time."""
        self.was_killed = True
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOPS_S)
        self.kill()


class Instance:
    """One instance, and the processes that it has had one after the other."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: Process | None = None
        self.zombies: list[Process] = []
        """Earlier processes that have not ended, paused or running beside their successor."""
        self.started = 0
        self.early_ends = 0
        """Number of processes in turn that ended by themselves soon after their start."""
        self.restart_s = 0.0
        """Time before which the instance is not started again."""


class Instances:
    """All instances of a program; ``close`` kills their processes."""

    def __init__(
        self, command: Sequence[str], servers: str, directory: Path, timeline: Timeline
    ) -> None:
        self._command = command
        self._servers = servers
        self._directory = directory
        self._timeline = timeline
        self._all: dict[int, Instance] = {}
        self._wanted: set[int] = set()
        self._gone: list[str] = []
        self.ended: list[tuple[str, int]] = []
        """Names and exit codes of processes that ended by themselves."""

    def of(self, number: int) -> Instance:
        """Return an instance by its number."""
        return self._all.setdefault(number, Instance(number))

    def running(self, number: int) -> Process | None:
        """Return the process of an instance, or ``None`` if it does not run."""
        process = self.of(number).process
        return None if process is None or process.exit_code is not None else process

    @property
    def processes(self) -> list[Process]:
        """All processes that have not ended."""
        instances = list(self._all.values())
        found = [p for each in instances for p in (each.process, *each.zombies) if p]
        return [each for each in found if each.exit_code is None]

    @property
    def marks(self) -> dict[str, str]:
        """Names of the processes that have not ended, by their marks."""
        return {each.mark: each.name for each in self.processes}

    def has_successor(self, process: str) -> bool:
        """Return whether the instance of a process runs, or will run again."""
        return any(is_of(process, number) for number in self._wanted)

    def take_gone(self) -> list[str]:
        """Return the names of processes that have ended since the last call."""
        gone, self._gone = self._gone, []
        return gone

    @property
    def has_sleeping_zombie(self) -> bool:
        """Whether a process that has a successor is paused."""
        return any(zombie.is_paused for each in self._all.values() for zombie in each.zombies)

    def start(self, number: int) -> Process:
        """Start the next process of an instance, unless one runs; raises CommandError."""
        self._wanted.add(number)
        instance = self.of(number)
        if instance.process is not None:
            if instance.process.exit_code is None:
                return instance.process
            self._note_end(instance, instance.process)
        name = str(number) + ("" if not instance.started else _letter(instance.started))
        instance.started += 1
        mark = f"{self._directory.name}/{name}"
        instance.process = Process(name, self._launch(number, mark), mark)
        self._timeline.note(name, f"started, pid {instance.process.pid}")
        return instance.process

    def _launch(self, number: int, mark: str) -> subprocess.Popen[bytes]:
        properties = self._directory / "client.properties"
        with open(properties, "w", opener=private_opener) as file:
            file.write(f"bootstrap.servers={self._servers}\n")
        texts = {SERVERS: self._servers, INSTANCE: str(number), PROPERTIES: str(properties)}
        texts[DIRECTORY] = str(self._directory)
        command = [replaced(each, texts) for each in self._command]
        environment = {
            **os.environ,
            VARIABLE: str(self._directory),
            NAME: mark,
            "KAFKA_BOOTSTRAP_SERVERS": self._servers,
            "BARNABAS_PROVE_INSTANCE": str(number),
            "BARNABAS_PROVE_PROPERTIES": str(properties),
        }
        try:
            with open(self._output(number), "ab", opener=private_opener) as output:
                return subprocess.Popen(  # noqa: S603 - the user's own program
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    start_new_session=True,
                )
        except OSError as error:
            words = f"{shlex.join(command)}: {error.strerror or error}"
            raise CommandError(f"the program cannot be started: {words}", USAGE) from None

    def _output(self, number: int) -> Path:
        return self._directory / f"instance-{number}.log"

    def _shorten_output(self, number: int) -> None:
        """Empty a long output; the processes append to it, so they continue at its beginning."""
        path = self._output(number)
        if path.exists() and path.stat().st_size > _OUTPUT_BYTES_MAX:
            os.truncate(path, 0)

    def last_words(self, number: int) -> str:
        """Return the end of an instance's output."""
        path = self._output(number)
        if not path.exists():
            return ""
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - _SHOWN_CHARACTERS))
            return file.read(_SHOWN_CHARACTERS).decode(errors="replace").strip()

    def supervise(self) -> None:
        """Start instances again that ended by themselves, as a supervisor of services would."""
        for number in sorted(self._wanted):
            self._shorten_output(number)
            instance = self.of(number)
            process = instance.process
            if process is None:
                if monotonic() >= instance.restart_s:
                    self.start(number)
                continue
            if process.exit_code is not None:
                self._note_end(instance, process)
        for instance in self._all.values():
            instance.zombies = [each for each in instance.zombies if self._runs(each)]

    def _runs(self, zombie: Process) -> bool:
        code = zombie.exit_code
        if code is not None:
            self._gone.append(zombie.name)
            if not zombie.was_killed:
                self._timeline.note(zombie.name, f"ended by itself, exit code {code}")
        return code is None

    def _note_end(self, instance: Instance, process: Process) -> None:
        self._gone.append(process.name)
        instance.process = None
        code = process.exit_code
        if code is None or process.was_killed:
            return
        self._timeline.note(process.name, f"ended by itself, exit code {code}")
        self.ended.append((process.name, code))
        ran_s = monotonic() - process.started_s
        instance.early_ends = 0 if ran_s >= _RUNS_S else instance.early_ends + 1
        rest_s = _RESTARTS_S[min(instance.early_ends, len(_RESTARTS_S) - 1)]
        instance.restart_s = monotonic() + rest_s

    def kill(self, number: int) -> bool:
        """Kill -9 the process of an instance, which then stays down until ``start`` is called.

        Return False if no process runs.
        """
        self._wanted.discard(number)
        process = self.running(number)
        if process is None:
            return False
        process.kill()
        self._gone.append(process.name)
        self._timeline.note(process.name, "killed (kill -9)")
        return True

    def signal_named(self, name: str, number: signal.Signals, reason: str) -> None:
        """Send a process SIGKILL or SIGSTOP without waiting, from any thread.

        ``supervise`` starts a killed process again.
        """
        for process in self.processes:
            if process.name == name:
                process.was_killed = process.was_killed or number == signal.SIGKILL
                process.send(number)
                word = "killed" if number == signal.SIGKILL else "stopped"
                self._timeline.note(name, f"{word} ({number.name}) {reason}")

    def pause(self, number: int) -> Process | None:
        """Stop the process of an instance in its tracks, or return ``None`` if it does not run."""
        process = self.running(number)
        if process is None or process.is_paused:
            return None
        process.is_paused = True
        process.send(signal.SIGSTOP)
        self._timeline.note(process.name, "paused (SIGSTOP)")
        return process

    def resume(self, process: Process) -> None:
        """Resume a paused process, which continues as if no time had passed."""
        process.is_paused = False
        if process.exit_code is None:
            process.send(signal.SIGCONT)
            self._timeline.note(process.name, "woke up (SIGCONT)")

    def replace(self, number: int) -> Process | None:
        """Pause an instance and start its successor; return the paused process, a zombie."""
        zombie = self.pause(number)
        if zombie is not None:
            self.of(number).zombies.append(zombie)
            self.of(number).process = None
            self.start(number)
        return zombie

    def leave(self, number: int) -> None:
        """Stop an instance by SIGTERM, and keep it stopped."""
        self._wanted.discard(number)
        process = self.running(number)
        if process is not None:
            self._timeline.note(process.name, "is stopped (SIGTERM)")
            process.stop()
            self._gone.append(process.name)

    def finish_zombies(self, within_s: float) -> None:
        """Give zombies some time to act and to end by themselves, then kill them."""
        until_s = monotonic() + within_s
        while any(each.zombies for each in self._all.values()) and monotonic() < until_s:
            self.supervise()
            sleep(_INTERVAL_S)
        for instance in self._all.values():
            for zombie in instance.zombies:
                self._timeline.note(zombie.name, "killed, since its successor runs")
                zombie.kill()
                self._gone.append(zombie.name)
            instance.zombies.clear()

    def close(self) -> None:
        """Kill all processes."""
        self._wanted.clear()
        for instance in self._all.values():
            for process in (instance.process, *instance.zombies):
                if process is not None:
                    process.kill()


def is_of(process: str, number: int) -> bool:
    """Return whether a process, ``1`` or its successor ``1b``, belongs to an instance."""
    return instance_of(process) == str(number)


def instance_of(process: str) -> str:
    """Return the number of the instance of a process, as text."""
    return process.rstrip("abcdefghijklmnopqrstuvwxyz").partition(".")[0]


def replaced(text: str, texts: Mapping[str, str]) -> str:
    """Return a text with the placeholders replaced."""
    for placeholder, value in texts.items():
        text = text.replace(placeholder, value)
    return text


def _letter(number: int) -> str:
    """Return the suffix of a successor: b to z, then ``.26``, ``.27``."""
    return chr(ord("a") + number) if number < 26 else f".{number}"
