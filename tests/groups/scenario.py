"""A life of several groups at once: members paused, killed, added, restarted, the broker killed.

All groups read the same topic under the same load, so that each wait is for all of them. The
interop tests use it once, the soak repeatedly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from barnabas.storage.runtime.clock import counter_ns
from tests.counterparts.broker_process import BrokerProcess
from tests.groups.fleet import Group, Kind, Member, Place, wait_for
from tests.groups.load import Load
from tests.groups.observer import Observer, as_commits, commits_in_log, committed, look
from tests.groups.observer import Place as CommittedPlace
from tests.history import checker
from tests.history.anomalies import Report
from tests.history.model import (
    ASSIGNED,
    END,
    HARMED,
    LOGGED,
    MOVED,
    OUTAGE,
    UNDISTURBED,
    History,
    LoggedCommit,
    Operation,
    Partition,
)

PARTITIONS = 6
MEMBERS = 3
STATIC_ATTEMPTS = 4
RECORDS_PER_S = 150
COME_BACK_NS = 5_000_000_000
KINDS = (
    Kind("confluent-eager", "confluent"),
    Kind("confluent-cooperative", "confluent", assignor="cooperative-sticky"),
    Kind("confluent-consumer", "confluent", "consumer", "uniform"),
    Kind("kafka-python-eager", "kafka_python"),
    Kind("aiokafka-eager", "aiokafka"),
    Kind("console-classic", "console"),
    Kind("console-consumer", "console", "consumer", "range"),
    # Their session is longer than a restart takes on a busy machine; nothing waits for its end.
    Kind("static-classic", "confluent", static=True, session_ms=45_000),
    # With the new protocol the session is the broker's (see below).
    Kind("static-consumer", "confluent", "consumer", "range", static=True, session_ms=5000),
)
MORE_KINDS = (
    Kind("kafka-python-cooperative", "kafka_python", assignor="cooperative-sticky"),
    Kind("verifiable-eager", "verifiable"),
    Kind("verifiable-cooperative", "verifiable", assignor="cooperative-sticky"),
    Kind("verifiable-consumer", "verifiable", "consumer", "uniform"),
    Kind("static-aiokafka", "aiokafka", static=True, session_ms=15_000),
)
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "200",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "5000",
    # librdkafka gives an answer to a heartbeat no longer than this, and when it comes later, waits
    # for an assignment that the coordinator has sent already and sends only once.
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1500",
}


class Mark(NamedTuple):
    """Committed offsets while a group is whole, and how many records each member had read."""

    look: Operation
    read: dict[str, int]


@dataclass
class Outcome:
    """Everything that was noted; ``report`` is what is wrong with it."""

    groups: dict[str, Group]
    load: Load
    seen: list[Operation] = field(default_factory=list)
    outages: list[Operation] = field(default_factory=list)
    ends: list[Operation] = field(default_factory=list)
    """Check the groups after all reads, after the members left, and after a kill of the broker."""
    log: list[LoggedCommit] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    undisturbed: dict[str, list[Operation]] = field(default_factory=dict)
    """By group: members that must not notice the restart of a static one."""

    def history(self) -> History:
        """Return everything as one history."""
        members = [member for group in self.groups.values() for member in group.members]
        history = [
            *self.load.operations(),
            *self.seen,
            *self.outages,
            *(mark.look for mark in self.marks),
            *(each for several in self.undisturbed.values() for each in several),
            *(
                Operation(HARMED, member.name)
                for member in members
                if member.was_killed or member.was_paused or member.gave_up
            ),
        ]
        untimed: History = []
        for member in members:
            if member.kind.library == "console":
                # In its own order: it is assigned partitions before it is known to have read.
                untimed += self._timed(member)
            else:
                history += member.operations()
        history.sort(key=lambda operation: operation.invoked_ns)
        return [*history, *untimed, *self.ends, self._logged()]

    def report(self) -> tuple[Report, list[str]]:
        """Check the history; return the report, and it for people."""
        history = self.history()
        report = checker.check(history)
        return report, list(checker.lines(report, history))

    def unexpected_ends(self) -> list[str]:
        """Return the errors of members that ended by themselves."""
        return [end for group in self.groups.values() for end in group.unexpected_ends()]

    def _logged(self) -> Operation:
        names = tuple(group.name for group in self.groups.values())
        commits = self.ends[-1].commits
        return Operation(LOGGED, "log", commits=commits, groups=names, logged=tuple(self.log))

    def _timed(self, member: Member) -> History:
        """Give times to a tool that prints none: it read after the last mark with fewer records.

        A mark records the state of a whole group before a disturbance. If a member starts a
        partition after a mark, it was assigned after the previous mark.
        """
        times = [0, 0]
        expected: dict[Partition, int] = {}
        marks = [*self.marks]
        history: History = []
        for index, operation in enumerate(member.operations()):
            while marks and marks[0].read.get(member.name, 0) <= index:
                times.append(marks.pop(0).look.completed_ns)
            (read,) = operation.reads
            if expected.get(read.place) != read.offset:
                moved = Operation(
                    MOVED,
                    member.name,
                    invoked_ns=times[-2],
                    moved=(read.place,),
                    reason=ASSIGNED,
                    group=operation.group,
                )
                history.append(moved)
            expected[read.place] = read.offset + 1
            history.append(replace(operation, invoked_ns=times[-1]))
        return history


class Count(NamedTuple):
    """The number of records that a group has read, and the number of repeated reads."""

    read: int
    read_again: int


class Scenario:
    """The groups, their load and their observer; each method is one thing that happens to them."""

    def __init__(
        self,
        broker: BrokerProcess,
        load: Load,
        kinds: Sequence[Kind],
        directory: Path,
        say: Callable[[str], None],
    ) -> None:
        self.broker = broker
        place = Place(broker.bootstrap_servers, load.topic, directory)
        self.groups = {kind.name: Group(kind, place, load.topic) for kind in kinds}
        self.outcome = Outcome(self.groups, load)
        self._load = load
        self.log_begins: dict[int, int] = {}
        self.longest_wait_s: dict[str, float] = {}
        """The longest time that each group took until it was whole."""
        self._say = say
        self._started_s = time.monotonic()

    @property
    def names(self) -> list[str]:
        return [group.name for group in self.groups.values()]

    def start_members(self) -> None:
        """Start the members of every group, one after the other in each."""
        for _ in range(MEMBERS):
            for group in self.groups.values():
                group.add()
        self.settle("members started")

    def pause_one_each(self) -> None:
        """Stop a member of each group for longer than its session, then resume it."""
        self.mark()
        paused = {kind: group.running[0] for kind, group in self._dynamic()}
        for member in paused.values():
            member.pause()
        ends = self._load.ends()
        for kind in paused:
            group = self.groups[kind]
            self._wait_covered(group, ends, group.running)
        self._say_time("paused members' partitions taken over")
        self.mark()
        for member in paused.values():
            member.resume()
        self.settle("paused members back")

    def kill_one_and_add_one_each(self) -> None:
        """Kill -9 a member of each group and start another beside it."""
        self.mark()
        for _, group in self._dynamic():
            group.running[-1].kill()
            group.add()
        self.settle("members killed and added")

    def restart_static_members(self) -> None:
        """End a static member of each group that has them, and start it again.

        On a very busy machine it may be back too late to be who it was; then once more.
        """
        left = [kind for kind, group in self.groups.items() if group.kind.static]
        for _ in range(STATIC_ATTEMPTS):
            if left:
                left = self._restart_static_members_of(left)

    def _restart_static_members_of(self, kinds: Sequence[str]) -> list[str]:
        """Restart one of each group; return the groups in which that took longer than its session.

        With the classic protocol by kill -9. With the new one it has to say that it will be back:
        before the session of the old one ends, the new one is refused (UNRELEASED_INSTANCE_ID).
        """
        self.mark()
        restarted = []
        for kind in kinds:
            group = self.groups[kind]
            gone = group.running[-1]
            others = [member.name for member in group.running[:-1]]
            from_ns = counter_ns()
            if group.kind.protocol == "classic":
                gone.kill()
            else:
                gone.ask_to_leave()
                gone.wait_until_gone()
            restarted.append((kind, group, others, from_ns, group.add(gone.instance)))
        self.settle("static members restarted")
        late = []
        for kind, group, others, from_ns, member in restarted:
            to_ns = counter_ns()
            # Later than its session it would have been a member like any other.
            in_time = (member.first_read_ns() - from_ns) / 1e6 < group.kind.session_ms
            if in_time:
                self.outcome.undisturbed.setdefault(kind, []).extend(
                    Operation(UNDISTURBED, name, invoked_ns=from_ns, completed_ns=to_ns)
                    for name in others
                )
            else:
                late.append(kind)
        return late

    def restart_broker(self) -> None:
        """Kill -9 the broker under load and start it again, while the groups are whole."""
        self.mark()
        self.bounce_broker(kill=True, down_s=0.0)
        self.settle("broker killed and started")

    def bounce_broker(self, *, kill: bool, down_s: float) -> None:
        """Kill -9 or terminate the broker, and start it again after a time."""
        from_ns = counter_ns()
        if kill:
            self.broker.kill()
        else:
            self.broker.terminate()
        time.sleep(down_s)
        self.broker.restart()
        # Clients come back a little later than the broker does.
        end_ns = counter_ns() + COME_BACK_NS
        self.outcome.outages.append(
            Operation(OUTAGE, "broker", invoked_ns=from_ns, completed_ns=end_ns)
        )

    def drain(self) -> None:
        """Stop the load, and wait until every group has committed all records."""
        self._load.stop()
        ends = self._load.ends()

        def all_committed() -> bool:
            for group in self.groups.values():
                group.replace_who_gave_up()
            now = wait_for_committed(self.broker, self.names)
            return all(
                now.get((name, *place)) == end for name in self.names for place, end in ends.items()
            )

        seconds = wait_for(all_committed, lambda: "everything read and committed")
        self._say_time(f"everything read and committed after {seconds:.1f} s")
        self._note_end("drained")

    def stop_members(self) -> None:
        """Stop all members in order."""
        members = [member for group in self.groups.values() for member in group.members]
        for member in members:
            member.ask_to_leave()
        for member in members:
            member.wait_until_gone()
        self._note_end("left")
        self._say_time("members gone")

    def look(self, *, kill: bool = True) -> None:
        """Kill -9 the broker without clients, restart it, and check its offsets (O8)."""
        if kill:
            self.broker.kill()
            self.broker.restart()
        self._note_end("killed")
        self.outcome.log = commits_in_log(self.broker.bootstrap_servers, self.log_begins)
        self._say_time("looked at the offsets and their log")

    def _note_end(self, name: str) -> None:
        offsets = wait_for_committed(self.broker, self.names)
        now_ns = counter_ns()
        end = Operation(END, name, invoked_ns=now_ns, commits=as_commits(offsets))
        self.outcome.ends.append(end)

    def kill_members(self) -> None:
        """Kill all processes, also after an error."""
        for group in self.groups.values():
            for member in group.members:
                member.kill_if_running()

    def count(self, kind: str) -> Count:
        """Return the amount that a group has read."""
        found = self.groups[kind].operations().values()
        reads = [(*r.place, r.offset) for several in found for each in several for r in each.reads]
        return Count(len(reads), len(reads) - len(set(reads)))

    def figures(self, kind: str) -> str:
        """Return one line about a group."""
        members, count = len(self.groups[kind].members), self.count(kind)
        read = f"{members} members, {count.read} records read, {count.read_again} again"
        return f"{kind}: {read}, whole after {self.longest_wait_s.get(kind, 0.0):.1f} s at most"

    def _dynamic(self) -> Iterable[tuple[str, Group]]:
        return ((kind, group) for kind, group in self.groups.items() if not group.kind.static)

    def mark(self) -> None:
        """Note what is committed, and what the members have read, while the groups are whole."""
        wait_for_committed(self.broker, self.names)
        found = look(self.broker, self.names)
        read = {
            name: sum(len(each.reads) for each in operations)
            for group in self.groups.values()
            for name, operations in group.operations().items()
        }
        self.outcome.marks.append(Mark(found, read))

    def _wait_covered(
        self, group: Group, ends: dict[Partition, int], members: Sequence[Member]
    ) -> None:
        def is_covered() -> bool:
            assert not group.unexpected_ends(), group.unexpected_ends()
            group.replace_who_gave_up()
            return group.covers(ends, members)

        wait_for(
            is_covered,
            lambda: f"all partitions of {group.name} are read by {[m.name for m in members]}",
        )

    def settle(self, what: str) -> None:
        """Wait until all partitions are read again, by members that all have some."""
        ends = self._load.ends()
        started_s = time.monotonic()
        pending = dict(self.groups)

        def are_whole() -> bool:
            for kind, group in list(pending.items()):
                assert not group.unexpected_ends(), group.unexpected_ends()
                group.replace_who_gave_up()
                if group.covers(ends, group.running) and group.is_busy(ends):
                    waited_s = time.monotonic() - started_s
                    self.longest_wait_s[kind] = max(waited_s, self.longest_wait_s.get(kind, 0.0))
                    del pending[kind]
            return not pending

        def who_is_not() -> str:
            return "".join(
                f"{group.name} is whole: {group.described()}" for group in pending.values()
            )

        wait_for(are_whole, who_is_not)
        self._say_time(what)

    def _say_time(self, what: str) -> None:
        self._say(f"{time.monotonic() - self._started_s:6.1f} s  {what}")


def wait_for_committed(broker: BrokerProcess, names: Sequence[str]) -> dict[CommittedPlace, int]:
    """Return the committed offsets of a broker that has just started and may still be loading."""
    found: dict[CommittedPlace, int] = {}

    def is_loaded() -> bool:
        try:
            found.update(committed(broker, names))
        except OSError:
            return False
        return True

    wait_for(is_loaded, lambda: "the broker has loaded its groups")
    return found


def short_life(
    broker: BrokerProcess,
    topic: str,
    kinds: Sequence[Kind],
    directory: Path,
    say: Callable[[str], None],
) -> tuple[Outcome, list[str]]:
    """Run every disturbance once on every group; return the outcome and its figures."""
    with Load(broker.bootstrap_servers, topic, PARTITIONS, RECORDS_PER_S) as load:
        scenario = Scenario(broker, load, kinds, directory, say)
        try:
            with Observer(broker, scenario.names) as observer:
                scenario.start_members()
                scenario.pause_one_each()
                scenario.kill_one_and_add_one_each()
                scenario.restart_static_members()
                scenario.restart_broker()
                scenario.drain()
                scenario.stop_members()
            scenario.outcome.seen = observer.seen
            scenario.look()
        finally:
            scenario.kill_members()
    return scenario.outcome, [scenario.figures(kind) for kind in scenario.groups]
