"""A broker, a fleet of clients, a nemesis; then peace, everything read to its end, and the check.

After the faults all transactions have to end by themselves, the group has to get to the end of its
input, and what is committed has to be the same before and after one more kill -9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from barnabas.broker.cli.proving.proxy import HOST, Proxy
from tests.history import checker
from tests.history.anomalies import Report
from tests.history.model import COMMITTED, OK, UNCOMMITTED, History, Partition, save
from tests.interop.administration import create
from tests.torture.nemesis import (
    BROKER_FAULTS,
    CLIENT_FAULTS,
    REST_S,
    RIGHTS_FAULTS,
    BrokerFaults,
)
from tests.waiting import wait_until
from tests.workload.access import Access
from tests.workload.drivers.confluent import Look
from tests.workload.fleet import KINDS, WIRE_KINDS, Fleet, Member
from tests.workload.journal import read_journals
from tests.workload.judge import Groups, read_at_the_end
from tests.workload.nemesis import Nemesis
from tests.workload.settings import GROUP, INPUTS, PARTITIONS, PLACES, TOPICS, WIRE, Kind

WAIT_S = 120
STABLE_S = 45
"""Far more than a transaction's timeout and a takeover of its coordinator."""
LOOK_S = 0.1

Say = Callable[[str], None]


class Mortal(Protocol):
    """A broker that can be killed and started again, or a cluster of them."""

    @property
    def bootstrap_servers(self) -> str: ...

    def kill(self) -> None: ...

    def restart(self) -> object: ...


class Fate(Protocol):
    """The source of faults of brokers and clients."""

    faults: Counter[str]
    """The number of times that each fault has happened."""

    def run(self, duration_s: float) -> None:
        """Make faults until the time is up, then heal everything."""


class Cuts(Protocol):
    """A proxy that cuts connections."""

    cuts: int
    """The number of cuts."""


@dataclass
class Outcome:
    """The result of a torture: the history, its faults, and the amount of work."""

    seed: int
    history: History = field(default_factory=list)
    report: Report = field(default_factory=Report)
    faults: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    """Clients whose library hung or gave up by an unexpected error, by role and library."""
    wrong: list[str] = field(default_factory=list)
    """The faults outside the history."""

    @property
    def committed(self) -> Counter[str]:
        """The number of acknowledged operations, by member."""
        return Counter(
            each.process.partition(".")[0]
            for each in self.history
            if each.outcome == OK and each.writes
        )

    def lines(self) -> list[str]:
        """Return everything for people."""
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        ended = ", ".join(f"{count} {name}" for name, count in sorted(self.ended.items()))
        lines = [
            f"seed {self.seed}: {faults or 'no faults'}",
            f"started again: {ended or 'nobody'}",
        ]
        committed = ", ".join(f"{name} {count}" for name, count in sorted(self.committed.items()))
        lines.append(f"acknowledged: {committed or 'nothing'}")
        lines += list(checker.lines(self.report, self.history))
        return lines + [f"WRONG: {each}" for each in self.wrong]


class Torture:
    """One round on a broker that was started after the creation of its `Access`."""

    wire_kinds: Sequence[Kind] = WIRE_KINDS
    """Clients by wire, beside those of libraries, where they need no login."""

    def __init__(
        self,
        broker: Mortal,
        access: Access,
        directory: Path,
        say: Say,
        kinds: Sequence[Kind] = KINDS,
    ) -> None:
        self._broker = broker
        self._access = access
        self._look = Look(access.servers, access.login)
        self._groups: Groups = {}
        self._directory = directory
        self._say = say
        self._kinds = kinds if access.login.mechanism else (*kinds, *self.wire_kinds)

    def run(self, seed: int, duration_s: float, *, harms_broker: bool) -> Outcome:
        """Run for a time; the history is in the directory afterwards."""
        outcome = Outcome(seed)
        self._access.administer(self._broker)
        with self.proxy(seed) as proxy:
            for topic in TOPICS:
                create(self._broker.bootstrap_servers, topic, partitions=PARTITIONS)
            with Fleet(self._access, self._directory, seed, self._kinds) as fleet:
                self._groups = groups_of(self._kinds, [each.name for each in fleet.members])
                nemesis = self.nemesis(fleet, proxy, seed, harms_broker=harms_broker)
                try:
                    self._live(fleet, nemesis, duration_s, outcome)
                finally:
                    # Also of a life that was cut short: what it was until then can be checked.
                    outcome.history = read_journals(fleet.journals())
                    save(outcome.history, self._directory / "history.jsonl")
            outcome.faults = nemesis.faults + Counter({"connections cut": proxy.cuts})
            outcome.history += self._read_at_the_end("final")
            if harms_broker:
                self._broker.kill()
                self._broker.restart()
                outcome.history += self._read_at_the_end("after-kill")
        save(outcome.history, self._directory / "history.jsonl")
        self._say("checking")
        outcome.report = checker.check(outcome.history)
        return outcome

    def proxy(self, seed: int) -> AbstractContextManager[Cuts]:
        """Return the proxy between clients and the broker."""
        return Proxy((HOST, self._access.broker_port), self._access.proxy_port, seed)

    def nemesis(self, fleet: Fleet, proxy: Cuts, seed: int, *, harms_broker: bool) -> Fate:
        """Return the source of faults for all of them."""
        rights = self._access.rights if self._access.loses_rights else ()
        faults = BrokerFaults(self._broker, fleet, proxy, rights)
        weights = CLIENT_FAULTS | (BROKER_FAULTS if harms_broker else {})
        weights |= RIGHTS_FAULTS if rights else {}
        return Nemesis(faults, weights, Random(seed), REST_S, self._say)

    def _live(self, fleet: Fleet, nemesis: Fate, duration_s: float, outcome: Outcome) -> None:
        self._until_busy(fleet)
        self._say("every client works")
        nemesis.run(duration_s)
        self._say("the faults are over")
        self._come_to_an_end(fleet, outcome)
        for member in fleet.members:
            for how, count in member.ended.items():
                outcome.ended[f"{member.kind.role} {member.kind.library} {how}"] += count
        outcome.wrong += filter(None, (each.unexpected_end() for each in fleet.members))

    def _until_busy(self, fleet: Fleet) -> None:
        """Wait until every client has completed an operation, apart from duellists.

        Who writes has had something acknowledged then: later, everything may be in its way.
        """

        def idle() -> list[str]:
            for each in fleet.members:
                each.restart_if_ended()
            done = Outcome(0, read_journals(fleet.journals())).committed
            return [
                each.name
                for each in fleet.members
                if not each.kind.transactional_id
                and not (done[each.name] or (each.kind.role == "reader" and has_read(each)))
            ]

        def has_read(member: Member) -> bool:
            return bool(member.journals[0].stat().st_size)

        wait_for(lambda: not idle(), lambda: f"everybody has begun: {idle()} has not")

    def _come_to_an_end(self, fleet: Fleet, outcome: Outcome) -> None:
        """Stop who writes; let the group read on to the end; stop the rest."""
        writers, others = fleet.of("writer", "sender"), fleet.of("transformer", "reader")
        for member in writers:
            member.ask_to_stop()
        for member in writers:
            member.wait_until_gone()

        def supervised(condition: Callable[[], bool]) -> Callable[[], bool]:
            """Whether a client may leave a transaction open until its timeout, because of a cut."""

            def is_so() -> bool:
                for member in others:
                    member.restart_if_ended()
                return condition()

            return is_so

        what = "every transaction ended"
        outcome.wrong += self._waited(supervised(self._is_stable), what, STABLE_S)
        outcome.wrong += self._wait_for_groups(supervised(self._groups_are_done))
        for member in others:
            member.ask_to_stop()
        for member in others:
            member.wait_until_gone()
        what = "every transaction of the group ended"
        outcome.wrong += self._waited(self._is_stable, what, STABLE_S)

    def _waited(
        self, condition: Callable[[], bool], what: str, seconds: float = WAIT_S
    ) -> list[str]:
        try:
            wait_for(condition, lambda: what, seconds)
        except AssertionError as error:
            return [str(error)]
        self._say(what)
        return []

    def _wait_for_groups(self, are_done: Callable[[], bool]) -> list[str]:
        """Wait for as long as an offset of a group advances: a busy machine may need long."""
        what = "the groups read their input to the end"
        advanced = self._committed()
        while wrong := self._waited(are_done, what):
            before, advanced = advanced, self._committed()
            if advanced == before:
                return wrong
        return []

    def _committed(self) -> dict[str, dict[Partition, int]]:
        """Return the offsets that each group has committed, 0 for none."""
        return {
            group: {each.place: max(each.offset, 0) for each in self._look.committed(group, places)}
            for group, places in self._groups.items()
        }

    def _is_stable(self) -> bool:
        stable, ends = (self._look.ends(PLACES, each) for each in (COMMITTED, UNCOMMITTED))
        return stable == ends

    def _groups_are_done(self) -> bool:
        """Return whether no committed record follows a group's offsets (markers may)."""
        committed = self._committed()
        return not any(
            self._look.read(committed[group], self._look.ends(places, COMMITTED), COMMITTED)
            for group, places in self._groups.items()
        )

    def _read_at_the_end(self, name: str) -> History:
        return read_at_the_end(self._look, name, PLACES, self._groups)


def groups_of(kinds: Sequence[Kind], names: Sequence[str]) -> Groups:
    """Return the groups of transformers: one for all libraries, and one of each by wire."""
    transformers = [
        (kind, name) for kind, name in zip(kinds, names, strict=True) if kind.role == "transformer"
    ]
    return {
        f"group-{name}" if kind.library in WIRE else GROUP: INPUTS for kind, name in transformers
    }


def wait_for(
    condition: Callable[[], bool], what: Callable[[], str], seconds: float = WAIT_S
) -> None:
    """Wait until something is so."""
    wait_until(condition, what, seconds=seconds, pause_s=LOOK_S)
