"""Groups of members as processes: start, pause, kill, add; wait until the group is whole again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.checkout import PYTHONPATH
from tests.counterparts.class_archive import TOOLS, archive_options
from tests.counterparts.jars import kafka_class_path
from tests.counterparts.java import java
from tests.counterparts.kafka_tools import CONSOLE_CONSUMER, VERIFIABLE_CONSUMER
from tests.groups.tools import Console, Journalled, Source, Tail, Verifiable
from tests.history.model import ASSIGNED, MOVED, POLL, Operation, Partition
from tests.waiting import wait_until
from tests.workload.settings import FATAL_EXIT_CODE, Settings

WAIT_S = 240
STOP_S = 90
# A consumer is small; many of them share a machine with two cores.
JVM_OPTIONS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TOOLS: dict[str, type[Source]] = {"console": Console, "verifiable": Verifiable}
_CLIENTS = "org.apache.kafka.clients.consumer"
JAVA_ASSIGNORS = {
    "range": f"{_CLIENTS}.RangeAssignor",
    "cooperative-sticky": f"{_CLIENTS}.CooperativeStickyAssignor",
}


@dataclass(frozen=True)
class Kind:
    """The kind of a group's members."""

    name: str
    library: str
    """confluent, kafka_python, aiokafka, console or verifiable."""
    protocol: str = "classic"
    assignor: str = "range"
    static: bool = False
    session_ms: int = 3000

    @property
    def is_java(self) -> bool:
        return self.library in _TOOLS


@dataclass(frozen=True)
class Place:
    """The addresses and the directory of a fleet's members."""

    servers: str
    topic: str
    directory: Path


class Member:
    """One member as a process."""

    def __init__(self, kind: Kind, place: Place, group: str, name: str, instance: str) -> None:
        self.name = name
        self.kind = kind
        self.instance = instance
        self.was_killed = False
        self._output = place.directory / f"{name}.events"
        self._errors = place.directory / f"{name}.stderr"
        source = _TOOLS.get(kind.library, Journalled)(name, group)
        self._tail = Tail(self._output, source)
        self._is_paused = False
        self.was_paused = False
        self._was_asked_to_leave = False
        command = _java_command if kind.is_java else _python_command
        with self._errors.open("wb") as errors, self._output.open("ab") as output:
            self._process = subprocess.Popen(
                command(self, place, group),
                stdin=subprocess.DEVNULL,
                stdout=output if kind.is_java else errors,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": PYTHONPATH},
            )

    @property
    def output(self) -> Path:
        return self._output

    @property
    def is_running(self) -> bool:
        """Whether the process lives and is not paused."""
        return self._process.poll() is None and not self._is_paused

    @property
    def is_alive(self) -> bool:
        """Whether the process lives, paused or not."""
        return self._process.poll() is None

    @property
    def gave_up(self) -> bool:
        """Whether it ended because of what its library does not try again.

        A static member of the new protocol that missed an answer rejoins under its id, and is
        refused until its own session ends (UNRELEASED_INSTANCE_ID; Apache Kafka 4.3.0 returns
        the same); for librdkafka that is fatal. For aiokafka it is that the coordinator, after a
        start, has not read everything yet.
        """
        is_static = self.kind.static and self.kind.protocol == "consumer"
        may_give_up = is_static or self.kind.library == "aiokafka"
        return may_give_up and self._process.poll() == FATAL_EXIT_CODE

    def operations(self) -> list[Operation]:
        """Return the operations that the member has noted up to now."""
        return self._tail.operations()

    def owned(self) -> set[Partition]:
        """Return the partitions that the member reports as its own; some tools report none."""
        owned: set[Partition] = set()
        for each in self.operations():
            if each.kind == MOVED:
                (owned.update if each.reason == ASSIGNED else owned.difference_update)(each.moved)
        return owned

    def pause(self) -> None:
        """Stop the process in its tracks; it believes that no time passes."""
        self._process.send_signal(signal.SIGSTOP)
        self._is_paused = True
        self.was_paused = True

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)
        self._is_paused = False

    def kill(self) -> None:
        """Kill -9."""
        self._process.kill()
        self._process.wait()
        self.was_killed = True

    def kill_if_running(self) -> None:
        """Kill all processes."""
        if self._process.poll() is None:
            self.kill()

    def first_read_ns(self) -> int:
        """Return when the member read its first record."""
        return next(each.invoked_ns for each in self.operations() if each.kind == POLL)

    def unexpected_end(self) -> str | None:
        """Return the description of an unexpected end of the process."""
        code = self._process.poll()
        # On a request to leave, a JVM ends with 143, or just after its start with the signal.
        asked = {143, -signal.SIGTERM} if self._was_asked_to_leave else set()
        if self.was_killed or self.gave_up or code in {None, 0, *asked}:
            return None
        return f"{self.name} ended with {code}: {self.errors()}"

    def ask_to_leave(self) -> None:
        """SIGTERM: commit, leave the group, exit."""
        if self._is_paused:
            self.resume()
        if self._process.poll() is None:
            self._was_asked_to_leave = True
            self._process.terminate()

    def wait_until_gone(self) -> None:
        """Wait for the end after `ask_to_leave`; a member that hangs is an error of the test."""
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not stop: {self.errors()}") from None

    def errors(self) -> str:
        """Return the end of what the process printed for people."""
        return self._errors.read_text(errors="replace")[-2000:]


class Group:
    """A group and all members it ever had."""

    def __init__(self, kind: Kind, place: Place, prefix: str) -> None:
        self.kind = kind
        self.name = f"{prefix}-{kind.name}"
        self.members: list[Member] = []
        self._place = place

    @property
    def running(self) -> list[Member]:
        return [member for member in self.members if member.is_running]

    def add(self, instance: str = "") -> Member:
        """Start a member; a static one may take the place of one that has ended."""
        name = f"{self.name}-{len(self.members)}"
        if self.kind.static and not instance:
            instance = f"instance-{len(self.members)}"
        member = Member(self.kind, self._place, self.name, name, instance)
        self.members.append(member)
        return member

    def replace_who_gave_up(self) -> None:
        """Restart members that gave up, as a supervisor would."""
        living = {member.instance for member in self.members if member.is_alive}
        gone = {member.instance for member in self.members if member.gave_up}
        for instance in sorted(gone - living):
            self.add(instance)

    def operations(self) -> dict[str, list[Operation]]:
        return {member.name: member.operations() for member in self.members}

    def covers(self, ends: dict[Partition, int], members: Iterable[Member]) -> bool:
        """Return whether the members have read records behind `ends` of every partition."""
        behind = {place for member in members for place in _read_behind(member, ends)}
        return behind >= ends.keys()

    def is_busy(self, ends: dict[Partition, int]) -> bool:
        """Return whether every running member has read a record behind `ends`."""
        return all(any(_read_behind(member, ends)) for member in self.running)

    def described(self) -> str:
        """Return the members with the partitions that they believe to have, as text."""
        return "".join(
            f"\n  {member.name} {sorted(member.owned())} {member.errors()}"
            for member in self.members
            if member.is_alive
        )

    def unexpected_ends(self) -> list[str]:
        """Return the errors of members that ended without a kill."""
        return [end for member in self.members if (end := member.unexpected_end())]


def _read_behind(member: Member, ends: dict[Partition, int]) -> set[Partition]:
    found: set[Partition] = set()
    for operation in reversed(member.operations()):
        found.update(r.place for r in operation.reads if r.offset >= ends.get(r.place, 1e18))
        if len(found) == len(ends):
            break
    return found


def wait_for(condition: Callable[[], bool], what: Callable[[], str]) -> float:
    """Wait until something is so; returns the seconds it took."""
    return wait_until(condition, what, seconds=WAIT_S, pause_s=0.1)


def _python_command(member: Member, place: Place, group: str) -> list[str]:
    kind = member.kind
    settings = Settings(
        "member",
        kind.library,
        member.name,
        place.servers,
        str(member.output),
        seed=0,
        topics=(place.topic,),
        group=group,
        protocol=kind.protocol,
        assignor=kind.assignor,
        instance=member.instance,
        session_ms=kind.session_ms,
        heartbeat_ms=min(500, kind.session_ms // 3),
    )
    return [sys.executable, "-m", "tests.workload.run_client", settings.as_json()]


def _java_command(member: Member, place: Place, group: str) -> list[str]:
    kind = member.kind
    properties = {
        "client.id": member.name,
        "group.protocol": kind.protocol,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": "200",
        "fetch.max.wait.ms": "100",
        "reconnect.backoff.max.ms": "500",
        "metadata.max.age.ms": "2000",
        "default.api.timeout.ms": "60000",
    }
    if kind.protocol == "classic":
        properties["session.timeout.ms"] = str(kind.session_ms)
        properties["heartbeat.interval.ms"] = "500"
        properties["partition.assignment.strategy"] = JAVA_ASSIGNORS[kind.assignor]
    else:
        properties["group.remote.assignor"] = kind.assignor
    if member.instance:
        properties["group.instance.id"] = member.instance
    configuration = place.directory / f"{member.name}.properties"
    configuration.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    # Its log is dropped: reports about a broker that is down for a moment are of no use.
    command = [str(java()), *JVM_OPTIONS, *archive_options(TOOLS), "-cp", kafka_class_path()]
    common = ["--bootstrap-server", place.servers, "--topic", place.topic]
    common += ["--command-config", str(configuration)]
    if kind.library == "verifiable":
        # What this tool takes from its own options wins over the file.
        chosen = ["--group-protocol", kind.protocol, "--group-id", group, "--verbose"]
        if kind.protocol == "classic":
            chosen += ["--session-timeout", str(kind.session_ms)]
            chosen += ["--assignment-strategy", JAVA_ASSIGNORS[kind.assignor]]
        else:
            chosen += ["--group-remote-assignor", kind.assignor]
        if member.instance:
            chosen += ["--group-instance-id", member.instance]
        return [*command, VERIFIABLE_CONSUMER, *common, *chosen]
    printed = ["print.partition=true", "print.offset=true", "print.key=true"]
    formatting = [part for each in printed for part in ("--formatter-property", each)]
    return [*command, CONSOLE_CONSUMER, *common, "--group", group, *formatting]
