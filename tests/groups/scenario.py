"""A life of several groups at once: members paused, killed, added, restarted, the broker killed.

All groups read the same topic under the same load, so that everything is waited for once. Used
short by the interop tests, and again and again by the soak.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.counterparts.broker_process import BrokerProcess
from tests.groups import checker
from tests.groups.checker import Mark, Outage
from tests.groups.events import READ, Event, Partition
from tests.groups.fleet import Group, Kind, Member, Place, wait_for
from tests.groups.load import Load
from tests.groups.observer import Commit, Observer, Seen, commits_in_log, committed
from tests.groups.observer import Place as CommittedPlace

PARTITIONS = 6
MEMBERS = 3
STATIC_ATTEMPTS = 4
RECORDS_PER_S = 150
# Who tells partitions that were lost from those that were revoked, and whose assignor gives nothing
# away before it was revoked. kafka-python's cooperative one does, when a member that had been
# thrown out comes back: which member gets what is the clients' business there.
TELLS_WHAT_IS_LOST = {"confluent"}

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


@dataclass
class Outcome:
    """Everything that was written down and seen; `violations` is what is wrong with it."""

    groups: dict[str, Group]
    acked: dict[tuple[str, int, int], str]
    failures: list[str]
    """Records that the broker did not take."""
    seen: list[Seen] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    at_end: dict[CommittedPlace, int] = field(default_factory=dict)
    after_leaving: dict[CommittedPlace, int] = field(default_factory=dict)
    after_kill: dict[CommittedPlace, int] = field(default_factory=dict)
    log: list[Commit] = field(default_factory=list)
    marks: dict[str, list[Mark]] = field(default_factory=dict)
    static_restarts: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    """By group: who was not to notice, from when, until when."""

    def journals(self, kind: str) -> dict[str, list[Event]]:
        return self.groups[kind].events()

    def violations(self, kind: str) -> list[str]:
        """Return everything that is wrong with one group."""
        group, journals = self.groups[kind], self.journals(kind)
        wrong = checker.lost_records(journals, self.acked)
        wrong += checker.moves_back(self.seen, group.name)
        wrong += checker.log_disagrees(self.log, self.after_kill, group.name)
        log = [commit for commit in self.log if commit.place[0] == group.name]
        if group.kind.library == "console":
            wrong += checker.read_again_since(journals, self.marks.get(kind, []))
        else:
            wrong += checker.read_again(journals)
            wrong += checker.gaps(journals)
            wrong += checker.unseen_commits(journals, group.name, self.seen)
            wrong += checker.commits_without_effect(journals, log)
            wrong += checker.refused_with_effect(journals, log, self.outages)
        if group.kind.library in TELLS_WHAT_IS_LOST:
            wrong += checker.owned_twice(journals, self._disturbed(kind))
        for name, from_ns, to_ns in self.static_restarts.get(kind, ()):
            changes = checker.rebalanced(journals[name], from_ns, to_ns)
            wrong += [f"{name} was disturbed by another's restart: {each}" for each in changes]
        return wrong + group.unexpected_ends()

    def changed_by_restart(self) -> list[str]:
        """Return committed offsets that are others after members left, or after kill -9."""
        left = checker.changed(self.at_end, self.after_leaving)
        return left + checker.changed(self.after_leaving, self.after_kill)

    def _disturbed(self, kind: str) -> set[str]:
        members = self.groups[kind].members
        return {m.name for m in members if m.killed_ns or m.was_paused or m.gave_up}


class Count(NamedTuple):
    """How many records a group has read, and how many of them were read before."""

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
        self.outcome = Outcome(self.groups, load.acked, load.failures)
        self._load = load
        self.log_begins: dict[int, int] = {}
        self.longest_wait_s: dict[str, float] = {}
        """How long each group took, at most, until it was whole."""
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
        """Stop a member of each group for longer than its session; then let it go on."""
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
        before the session of the old one is over, the new one is refused (UNRELEASED_INSTANCE_ID).
        """
        self.mark()
        restarted = []
        for kind in kinds:
            group = self.groups[kind]
            gone = group.running[-1]
            others = [member.name for member in group.running[:-1]]
            from_ns = time.time_ns()
            if group.kind.protocol == "classic":
                gone.kill()
            else:
                gone.ask_to_leave()
                gone.wait_until_gone()
            restarted.append((kind, group, others, from_ns, group.add(gone.instance)))
        self.settle("static members restarted")
        late = []
        for kind, group, others, from_ns, member in restarted:
            to_ns = time.time_ns()
            # Later than its session it would have been a member like any other.
            in_time = (member.first_read_ns() - from_ns) / 1e6 < group.kind.session_ms
            if in_time:
                spans = self.outcome.static_restarts.setdefault(kind, [])
                spans += [(name, from_ns, to_ns) for name in others]
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
        from_ns = time.time_ns()
        if kill:
            self.broker.kill()
        else:
            self.broker.terminate()
        time.sleep(down_s)
        self.broker.restart()
        # Clients come back a little later than the broker does.
        self.outcome.outages.append(Outage(from_ns, time.time_ns() + 5_000_000_000))

    def drain(self) -> None:
        """Send nothing more; wait until every group has committed everything."""
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
        self.outcome.at_end = wait_for_committed(self.broker, self.names)

    def stop_members(self) -> None:
        """Let all members leave."""
        members = [member for group in self.groups.values() for member in group.members]
        for member in members:
            member.ask_to_leave()
        for member in members:
            member.wait_until_gone()
        self.outcome.after_leaving = wait_for_committed(self.broker, self.names)
        self._say_time("members gone")

    def look(self, *, kill: bool = True) -> None:
        """Kill -9 the broker without anybody connected; look at what it remembers (O8)."""
        if kill:
            self.broker.kill()
            self.broker.restart()
        self.outcome.after_kill = wait_for_committed(self.broker, self.names)
        self.outcome.log = commits_in_log(self.broker.bootstrap_servers, self.log_begins)
        self._say_time("looked at the offsets and their log")

    def kill_members(self) -> None:
        """Leave no process behind, whatever happened."""
        for group in self.groups.values():
            for member in group.members:
                member.kill_if_running()

    def count(self, kind: str) -> Count:
        """Return how much a group has read."""
        journals = self.outcome.journals(kind)
        read = sum(len(e.records) for events in journals.values() for e in events if e.kind == READ)
        return Count(read, checker.duplicates(journals))

    def figures(self, kind: str) -> str:
        """Return one line about a group."""
        members, count = len(self.groups[kind].members), self.count(kind)
        read = f"{members} members, {count.read} records read, {count.read_again} again"
        return f"{kind}: {read}, whole after {self.longest_wait_s.get(kind, 0.0):.1f} s at most"

    def _dynamic(self) -> Iterable[tuple[str, Group]]:
        return ((kind, group) for kind, group in self.groups.items() if not group.kind.static)

    def mark(self) -> None:
        """Note what is committed, and what the members have read, while the groups are whole."""
        now = wait_for_committed(self.broker, self.names)
        for kind, group in self.groups.items():
            offsets = {place[1:]: offset for place, offset in now.items() if place[0] == group.name}
            read = {
                name: sum(len(event.records) for event in events)
                for name, events in group.events().items()
            }
            self.outcome.marks.setdefault(kind, []).append(Mark(offsets, read))

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
    """Let every group live through everything once; return the outcome and its figures."""
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
