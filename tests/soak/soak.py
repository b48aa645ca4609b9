"""The soak: rounds of groups that live under random faults, checked and measured one by one.

A round has its own topic and groups. In a stormy round the broker is killed and terminated, too; in
a calm one it lives on, so that its memory and its descriptors can be compared from round to round.
At the end of each round everything is checked that holds without transactions: O1, O5, O8, and
O7 for the groups, offsets and topics of all rounds before, which were deleted. (O2, O3, O4 and O6
speak of transactions.)
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.counterparts.broker_process import BrokerProcess
from tests.groups.fleet import Group, Kind, Member
from tests.groups.load import Load
from tests.groups.observer import Observer, Place, log_ends
from tests.groups.scenario import (
    KINDS,
    MORE_KINDS,
    PARTITIONS,
    RECORDS_PER_S,
    Outcome,
    Scenario,
    wait_for_committed,
)
from tests.history.model import OK
from tests.interop.administration import create
from tests.soak import visitors
from tests.soak.anchors import anchor_groups, drop_anchors
from tests.soak.cleaning import delete_groups, delete_offsets, delete_topic, remove_static_members

GROUPS_PER_ROUND = 5
JAVA_GROUPS_PER_ROUND = 1
MOST_MEMBERS = 5
PAUSE_MOST_S = 6.0
DOWN_MOST_S = 2.0
STORMY_EVERY = 4
REST_S = 2.0
# What a broker may have more than after its first calm round: buffers, caches that fill.
GROWTH_MOST_BYTES = 24 << 20
GROWTH_MOST_DESCRIPTORS = 8

Say = Callable[[str], None]


class Sample(NamedTuple):
    """The broker's resources when no client is connected."""

    pid: int
    resident_bytes: int
    descriptors: int


@dataclass
class Report:
    """The findings of a soak, which passed if `violations` is empty."""

    seed: int
    rounds: int = 0
    records: int = 0
    read: int = 0
    read_again: int = 0
    kills: int = 0
    events: int = 0
    samples: list[Sample] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the figures for people."""
        life = f"{self.rounds} rounds, {self.events} events, {self.kills} times without a broker"
        read = f"{self.read} read by groups, {self.read_again} of them again"
        lines = [f"seed {self.seed}: {life}", f"{self.records} records acknowledged, {read}"]
        lines += [
            f"broker {sample.pid}: {sample.resident_bytes / (1 << 20):.0f} MiB, "
            f"{sample.descriptors} descriptors"
            for sample in self.samples
        ]
        return lines


def grown(samples: Sequence[Sample]) -> list[str]:
    """Return the resources that grew between calm rounds, beyond the limits of caches.

    The first sample of a process is not compared: it has just started and holds nothing yet.
    """
    wrong = []
    for pid in dict.fromkeys(sample.pid for sample in samples):
        warm = [sample for sample in samples if sample.pid == pid][1:]
        for later in warm[1:]:
            if later.resident_bytes > warm[0].resident_bytes + GROWTH_MOST_BYTES:
                wrong.append(f"memory grew from {warm[0]} to {later}")
            if later.descriptors > warm[0].descriptors + GROWTH_MOST_DESCRIPTORS:
                wrong.append(f"descriptors grew from {warm[0]} to {later}")
    return wrong


class Soak:
    """A broker, a seed, and rounds until the time is up."""

    def __init__(
        self,
        broker: BrokerProcess,
        seed: int,
        round_s: float,
        say: Say,
        groups_per_round: int = GROUPS_PER_ROUND,
    ) -> None:
        self.report = Report(seed)
        self._broker = broker
        self._chance = random.Random(seed)
        self._round_s = round_s
        self._say = say
        self._groups_per_round = groups_per_round
        self._gone: list[str] = []
        """Groups that were deleted and must not come back."""
        self._anchors: dict[Place, int] = {}

    def run(self, duration_s: float) -> Report:
        """Run rounds until the time is up; at least one stormy and one calm."""
        until_s = time.monotonic() + duration_s
        create(self._broker.bootstrap_servers, visitors.TOPIC, partitions=1)
        self._anchors = drop_anchors(self._broker, visitors.TOPIC)
        while time.monotonic() < until_s or self.report.rounds < 2:
            self._round(is_stormy=self.report.rounds % STORMY_EVERY == 0)
            if self.report.violations:
                break
        self.report.violations += grown(self.report.samples)
        return self.report

    def _round(self, *, is_stormy: bool) -> None:
        topic = f"soak-{self.report.rounds}"
        kinds = self._chosen_kinds()
        names = ", ".join(kind.name for kind in kinds)
        self._say(f"{topic}, {'stormy' if is_stormy else 'calm'}: {names}")
        create(self._broker.bootstrap_servers, topic, partitions=PARTITIONS)
        # Stays when something is wrong: it has everything that the members wrote down.
        directory = Path(tempfile.mkdtemp(prefix=f"{topic}-"))
        self._say(f"  members write to {directory}")
        life = Life(self, topic, kinds, directory, is_stormy=is_stormy)
        outcome = life.run()
        self._judge(topic, kinds, outcome, life)
        if not self.report.violations:
            shutil.rmtree(directory)
        self._clean_up(topic, list(outcome.groups.values()))
        if is_stormy:
            self._broker.kill()
            self._broker.restart()
        time.sleep(REST_S)
        self._look_for_old_groups()
        self._sample()
        self.report.rounds += 1

    def _chosen_kinds(self) -> list[Kind]:
        java = [kind for kind in KINDS + MORE_KINDS if kind.is_java]
        others = [kind for kind in KINDS + MORE_KINDS if not kind.is_java]
        chosen = self._chance.sample(java, JAVA_GROUPS_PER_ROUND)
        count = self._groups_per_round - JAVA_GROUPS_PER_ROUND
        return chosen + self._chance.sample(others, count)

    def _judge(self, topic: str, kinds: Sequence[Kind], outcome: Outcome, life: Life) -> None:
        report = self.report
        for kind in kinds:
            figures = life.scenario.count(kind.name)
            report.read += figures.read
            report.read_again += figures.read_again
            self._say(f"  {life.scenario.figures(kind.name)}")
        found, lines = outcome.report()
        wrong = [*(lines if found.violations else []), *outcome.unexpected_ends()]
        wrong += [
            f"not taken: {each.described()}"
            for each in outcome.load.operations()
            if each.outcome != OK
        ]
        report.violations += [f"{topic}: {each}" for each in wrong]
        report.records += outcome.load.acknowledged
        report.kills += len(outcome.outages)
        report.events += life.events

    def _clean_up(self, topic: str, groups: Sequence[Group]) -> None:
        """Delete some of the groups, the offsets of the others, and the topic."""
        for group in groups:
            remove_static_members(self._broker, group)
        names = [group.name for group in groups]
        whole = [name for name in names if self._chance.random() < 0.5]
        emptied = [name for name in names if name not in whole]
        delete_groups(self._broker, whole)
        for name in emptied:
            delete_offsets(self._broker, name, topic, PARTITIONS)
        delete_topic(self._broker, topic)
        self._gone += names

    def _look_for_old_groups(self) -> None:
        """Check that deleted groups stay deleted (O7), and others are unchanged (O8)."""
        found: dict[Place, int] = wait_for_committed(self._broker, self._gone)
        self.report.violations += [f"O7: {place} is back at {found[place]}" for place in found]
        anchors = wait_for_committed(self._broker, anchor_groups())
        self.report.violations += [
            f"O8: {place} was {self._anchors.get(place)}, now it is {anchors.get(place)}"
            for place in sorted(self._anchors.keys() | anchors.keys())
            if self._anchors.get(place) != anchors.get(place)
        ]

    def _sample(self) -> None:
        pid = self._broker.pid
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        sample = Sample(pid, self._broker.resident_bytes(), descriptors)
        self.report.samples.append(sample)
        self._say(f"  {sample.resident_bytes / (1 << 20):.0f} MiB, {descriptors} descriptors")


class Life:
    """One round: groups under load, and something happening every other moment."""

    def __init__(
        self, soak: Soak, topic: str, kinds: Sequence[Kind], directory: Path, *, is_stormy: bool
    ) -> None:
        self.events = 0
        self._broker = soak._broker
        self._chance = soak._chance
        self._round_s = soak._round_s
        self._is_stormy = is_stormy
        self._load = Load(self._broker.bootstrap_servers, topic, PARTITIONS, RECORDS_PER_S)
        self.scenario = Scenario(self._broker, self._load, kinds, directory, lambda _text: None)
        # Earlier records are of other groups.
        self.scenario.log_begins = log_ends(self._broker.bootstrap_servers)
        self._paused: list[tuple[float, Member]] = []
        self._visits: list[threading.Thread] = []
        # Visitors live in threads: their own chance, so that the seed decides everything here.
        self._visitors_seed = self._chance.randrange(1 << 32)

    def run(self) -> Outcome:
        """Live; return everything that was written down."""
        scenario = self.scenario
        try:
            with self._load, Observer(self._broker, scenario.names) as observer:
                scenario.start_members()
                until_s = time.monotonic() + self._round_s
                while time.monotonic() < until_s:
                    self._disturb()
                    self._wait(self._chance.uniform(0.1, 1.5))
                if self._is_stormy and not scenario.outcome.outages:
                    self._bounce(self._any_group())
                self._resume(everybody=True)
                scenario.settle("whole again")
                scenario.drain()
                scenario.stop_members()
            scenario.outcome.seen = observer.seen
            for visit in self._visits:
                visit.join()
            scenario.look(kill=self._is_stormy)
        finally:
            scenario.kill_members()
        return scenario.outcome

    def _disturb(self) -> None:
        actions = [self._pause, self._kill, self._leave, self._add, self._visit, self._be_whole]
        weights = [3, 3, 2, 3, 4, 1]
        if self._is_stormy:
            actions.append(self._bounce)
            weights.append(3)
        self.events += 1
        (action,) = self._chance.choices(actions, weights)
        action(self._any_group())

    def _any_group(self) -> Group:
        return self._chance.choice(list(self.scenario.groups.values()))

    def _pause(self, group: Group) -> None:
        """Stop a member for less or for more than its session."""
        if len(group.running) > 1:
            member = self._chance.choice(group.running)
            member.pause()
            resume_s = time.monotonic() + self._chance.uniform(0.5, PAUSE_MOST_S)
            self._paused.append((resume_s, member))

    def _kill(self, group: Group) -> None:
        """Kill a member; a static one is back at once, under its name."""
        if len(group.running) > 1:
            member = self._chance.choice(group.running)
            if group.kind.static and group.kind.protocol == "consumer":
                # After a kill its place would be taken until the session of the dead member ends.
                member.ask_to_leave()
                member.wait_until_gone()
            else:
                member.kill()
            if group.kind.static:
                group.add(member.instance)

    def _leave(self, group: Group) -> None:
        if len(group.running) > 2 and not group.kind.static:
            self._chance.choice(group.running).ask_to_leave()

    def _add(self, group: Group) -> None:
        # More members than partitions would have nothing to do, and nothing to be judged by.
        if len([member for member in group.members if member.is_alive]) < MOST_MEMBERS:
            group.add()

    def _visit(self, _group: Group) -> None:
        chance = random.Random(self._visitors_seed + len(self._visits))
        visit = threading.Thread(target=visitors.visit, args=(self._broker, chance))
        visit.start()
        self._visits.append(visit)

    def _bounce(self, _group: Group) -> None:
        kill = self._chance.random() < 0.7
        self.scenario.bounce_broker(kill=kill, down_s=self._chance.uniform(0, DOWN_MOST_S))

    def _be_whole(self, _group: Group) -> None:
        """Wait until all groups are whole: what is committed then is not read again."""
        self._resume(everybody=True)
        self.scenario.settle("whole")
        self.scenario.mark()

    def _wait(self, seconds: float) -> None:
        time.sleep(seconds)
        self._resume(everybody=False)

    def _resume(self, *, everybody: bool) -> None:
        now_s = time.monotonic()
        for resume_s, member in self._paused:
            if everybody or now_s >= resume_s:
                member.resume()
        left = [(at_s, member) for at_s, member in self._paused if at_s > now_s]
        self._paused = [] if everybody else left
