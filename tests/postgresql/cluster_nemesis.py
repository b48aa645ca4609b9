"""Three brokers, PostgreSQL and its standby, the torture's clients, and every kind of fault.

With `--objects` their large flushes are in an object store, which fails as well.

`python -m tests.postgresql.cluster_nemesis --rounds 20 --seed 7 --seconds 60`: each round has a
cluster of its own and the seed after the last one's. The torture's judge checks the clients'
histories, transactions that do not end, and the records after all brokers were killed. No broker
may end by itself, nor log an error that it cannot handle.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import Final

from barnabas.broker.cli.proving.faults import Cure, Fault
from tests.counterparts.postgresql_servers import Pair
from tests.history.model import COMMITTED, UNCOMMITTED
from tests.postgresql.brokers import LEASE_MS, LinkedMember, running
from tests.postgresql.links import Between, Cut, Links
from tests.postgresql.object_nemesis import OBJECT_FAULTS, OBJECTS, HurriedMember, Objects
from tests.torture.nemesis import ClientFaults
from tests.torture.process_brokers import ProcessBrokers
from tests.torture.torture import Outcome, Say, Torture
from tests.workload.access import BROKER_SETTINGS, Access
from tests.workload.fleet import Fleet
from tests.workload.nemesis import Nemesis
from tests.workload.settings import TRANSACTION_TIMEOUT_MS, Kind

BROKERS = 3
SETTINGS = BROKER_SETTINGS | {
    "barnabas.flush.object.min.bytes": "500",
    "barnabas.flush.ms": "0",
}
"""Settings with which many flushes are uploaded."""
LEASE_S = LEASE_MS / 1000
PAUSE_S = (0.5 * LEASE_S, 2.5 * LEASE_S)
"""For less than a lease, and for more."""
RESTS_S = ((0.1, 1), (0.5, 2), (1, 4))
"""Pauses between faults: with short ones few parts work at a time, with long ones clients
do much."""
WAIT_FOR_STANDBY_S = 3
MOST_STUCK_S = 2 * (TRANSACTION_TIMEOUT_MS / 1000 + LEASE_S + 3)
"""Maximum time until a committed record is readable: a transaction before it has to time out and
its coordinator to move (the lease and 3 s more), twice as long on a busy machine."""
OURS = "FROM pg_stat_activity WHERE application_name = 'barnabas'"
WAITS = "wait_event = 'SyncRep'"

CLIENT_FAULTS = {"kill_client": 1, "add_twin": 1, "pause_client": 2}
BROKER_FAULTS = {"kill_broker": 4, "stop_broker": 2, "pause_broker": 3}
LINK_FAULTS = {"cut_brokers": 3, "cut_off_broker": 2, "cut_store": 3}
LINK_TO_OBJECTS_FAULTS = {"cut_objects": 2}
STORE_FAULTS = {
    "end_connections": 2,
    "cancel_statements": 2,
    "end_waits_for_the_standby": 1,
    "crash_store": 1,
    "fail_over": 2,
    "split": 2,
    "fence": 2,
    "set_store_clock": 1,
}
WEIGHTS = CLIENT_FAULTS | BROKER_FAULTS | LINK_FAULTS | STORE_FAULTS
"""Faults without an object store."""
HOWS_TO_END = ("terminate cancel", "cancel terminate")
COMPLAINTS: Final = ("Traceback", " ERROR ", " CRITICAL ")

KINDS = (
    Kind("writer", "confluent", "duel"),
    Kind("writer", "confluent"),
    Kind("writer", "kafka_python"),
    Kind("writer", "aiokafka", "duel"),
    Kind("writer", "java"),
    Kind("sender", "confluent"),
    Kind("transformer", "confluent"),
    Kind("transformer", "kafka_python"),
    Kind("reader", "confluent", isolation=COMMITTED),
    Kind("reader", "kafka_python", isolation=COMMITTED),
    Kind("reader", "confluent", isolation=UNCOMMITTED),
)
QUICK_KINDS = (
    Kind("writer", "confluent"),
    Kind("writer", "kafka_python"),
    Kind("sender", "confluent"),
    Kind("transformer", "confluent"),
    Kind("reader", "confluent", isolation=COMMITTED),
)


class Brokers(ProcessBrokers):
    """The brokers of a cluster, killed and started together if no node id is given."""

    def complaints(self) -> list[str]:
        """Return the log lines of brokers that report an unexpected error."""
        return [
            f"broker {each.number}: {line}"
            for each in self.members
            for line in each.output_path.read_text(errors="replace").splitlines()
            if any(sign in line for sign in COMPLAINTS)
        ]


class ClusterFaults(ClientFaults):
    """Performs faults of brokers, links, servers and clients, several at a time.

    Those of brokers, links and servers heal by themselves, on threads.
    """

    def __init__(
        self, brokers: Brokers, pair: Pair, links: Links, objects: Objects | None, fleet: Fleet
    ) -> None:
        super().__init__(fleet, links)
        self._members = brokers.members
        self._pair = pair
        self._links = links
        self._objects = objects
        self._under_way: dict[object, Future[None]] = {}
        """By what something happens to: a broker, a link, the pair, or the object store."""
        self._threads = ThreadPoolExecutor()

    def draw(self, kind: str, chance: Random, harmed: Collection[int]) -> Fault | None:
        if kind in CLIENT_FAULTS:
            return super().draw(kind, chance, harmed)
        if kind in STORE_FAULTS:
            fault = Fault(kind, share=chance.random(), how=chance.choice(HOWS_TO_END))
            return None if self._is_under_way(self._pair) else fault
        if kind in OBJECT_FAULTS:
            assert self._objects is not None, "the fault is of an object store"
            return None if self._is_under_way(self._objects) else self._objects.draw(kind, chance)
        free = [each.number for each in self._members if not self._is_under_way(each)]
        if kind in BROKER_FAULTS:
            away_s = chance.choice((0, 0, 2 * LEASE_S)) if kind == "kill_broker" else 0
            seconds = chance.uniform(*PAUSE_S) if kind == "pause_broker" else away_s
            return Fault(kind, seconds, (chance.choice(free),)) if free else None
        numbers = chance.sample([each.number for each in self._members], 2)
        how, share = chance.choice(list(Cut)).name, chance.random()
        brokers = tuple(numbers) if kind == "cut_brokers" else (numbers[0],)
        fault = Fault(kind, chance.uniform(*PAUSE_S), brokers, share=share, how=how)
        return None if any(map(self._is_under_way, self._links_of(fault))) else fault

    def begin(self, fault: Fault) -> Cure | None:
        if fault.kind in CLIENT_FAULTS:
            return super().begin(fault)
        if fault.kind in LINK_FAULTS | LINK_TO_OBJECTS_FAULTS:
            links = self._links_of(fault)
            future = self._threads.submit(self._cut, links, fault)
            self._under_way |= dict.fromkeys(links, future)
            return None
        of_objects = self._objects is not None and fault.kind in OBJECT_FAULTS
        action = self._objects.action(fault.kind) if of_objects else getattr(self, f"_{fault.kind}")
        self._under_way[self._harmed_by(fault)] = self._threads.submit(action, fault)
        return None

    def _harmed_by(self, fault: Fault) -> object:
        """Return the object of a fault; it gets no other fault meanwhile."""
        if fault.kind in BROKER_FAULTS:
            return self._broker(fault.brokers[0])
        return self._objects if fault.kind in OBJECT_FAULTS else self._pair

    def supervise(self, harmed: Collection[int]) -> None:
        for what, future in self._under_way.items():
            if future.done():
                error = future.exception()
                assert error is None, f"{what}: {error!r}"
        for each in self._members:
            is_meant = self._is_under_way(each)
            assert is_meant or each.is_running, f"broker {each.number} ended: {each.output()}"
        super().supervise(harmed)

    def finish(self) -> None:
        self._threads.shutdown()
        for future in self._under_way.values():
            future.result()
        if self._objects is not None:
            self._objects.heal()

    def _is_under_way(self, what: object) -> bool:
        future = self._under_way.get(what)
        return future is not None and not future.done()

    # -- brokers -----------------------------------------------------------------------------------

    def _broker(self, number: int) -> LinkedMember:
        return next(each for each in self._members if each.number == number)

    def _kill_broker(self, fault: Fault) -> None:
        member = self._broker(*fault.brokers)
        member.kill()
        time.sleep(fault.seconds)
        member.restart()

    def _stop_broker(self, fault: Fault) -> None:
        member = self._broker(*fault.brokers)
        status = member.terminate()
        assert status == 0, f"broker {member.number} ended with {status}: {member.output()}"
        member.restart()

    def _pause_broker(self, fault: Fault) -> None:
        member = self._broker(*fault.brokers)
        member.pause()
        time.sleep(fault.seconds)
        member.resume()

    # -- links -------------------------------------------------------------------------------------

    def _links_of(self, fault: Fault) -> list[Between]:
        one = self._broker(fault.brokers[0])
        if fault.kind == "cut_objects":
            return [Between(one.number, OBJECTS)]
        if fault.kind == "cut_store":
            return one.to_store()
        if fault.kind == "cut_brokers":
            # In one direction or both.
            other = self._broker(fault.brokers[1])
            return [one.to(other), other.to(one)][: 1 + (fault.share < 0.5)]
        # The broker reaches no other broker, and only clients reach it.
        others = [each for each in self._members if each is not one]
        among = [link for each in others for link in (one.to(each), each.to(one))]
        return [*among, *one.to_store()]

    def _cut(self, links: Sequence[Between], fault: Fault) -> None:
        self._links.cut(links, Cut[fault.how])
        time.sleep(fault.seconds)
        self._links.mend(links)

    # -- PostgreSQL --------------------------------------------------------------------------------

    def _end_connections(self, _fault: Fault) -> None:
        self._pair.primary.execute(f"SELECT pg_terminate_backend(pid) {OURS}")

    def _cancel_statements(self, _fault: Fault) -> None:
        self._pair.primary.execute(f"SELECT pg_cancel_backend(pid) {OURS}")

    def _end_waits_for_the_standby(self, fault: Fault) -> None:
        """The flushes that waited become visible, but exist on the primary only."""
        self._pair.cut()
        for how in fault.how.split():
            self._wait_for_one_that_waits()
            self._pair.primary.execute(f"SELECT pg_{how}_backend(pid) {OURS} AND {WAITS}")
        self._pair.mend()

    def _crash_store(self, _fault: Fault) -> None:
        self._pair.primary.crash()
        self._pair.primary.start()

    def _fail_over(self, fault: Fault) -> None:
        if fault.share < 0.5:
            self._pair.cut()
            self._wait_for_one_that_waits()
        self._pair.fail_over()

    def _split(self, fault: Fault) -> None:
        """Promote the standby; the old primary stays alive, its flushes get no result."""
        self._pair.cut()
        self._wait_for_one_that_waits()
        old = self._pair.split()
        for _ in range(2 + int(4 * fault.share)):
            old.terminate_waiting()
            time.sleep(max(0.1, fault.share))
        self._pair.follow()

    def _fence(self, fault: Fault) -> None:
        """A session is ended, and its broker hears of it when it writes something."""
        sessions = self._pair.primary.execute(
            "SELECT session_id FROM barnabas.sessions WHERE state <> 'fenced' ORDER BY 1"
        )
        if sessions:
            (session,) = sessions[int(fault.share * len(sessions))]
            self._pair.primary.execute("SELECT barnabas.fence(%s)", session)

    def _set_store_clock(self, fault: Fault) -> None:
        """The server's clock is set by an hour: what was noted by it is as far away."""
        hours = -1 if fault.share < 0.5 else 1
        shifted = f"lease_until - {hours} * interval '1 hour'"
        self._pair.primary.execute(f"UPDATE barnabas.leases SET lease_until = {shifted}")

    def _wait_for_one_that_waits(self) -> None:
        """Give brokers a while to write something; all of them may be unavailable."""
        until_s = time.monotonic() + WAIT_FOR_STANDBY_S
        question = f"SELECT count(*) > 0 FROM pg_stat_activity WHERE {WAITS}"
        while time.monotonic() < until_s:
            if self._pair.primary.execute(question) == [(True,)]:
                return
            time.sleep(0.02)


class ClusterTorture(Torture):
    """One round of the torture on a cluster that runs."""

    def __init__(
        self,
        brokers: Brokers,
        pair: Pair,
        links: Links,
        objects: Objects | None,
        directory: Path,
        say: Say,
        kinds: Sequence[Kind],
    ) -> None:
        super().__init__(brokers, Access(brokers.bootstrap_servers), directory, say, kinds)
        self._brokers = brokers
        self._pair = pair
        self._links = links
        self._objects = objects

    def proxy(self, seed: int) -> nullcontext[Links]:
        return nullcontext(self._links)

    def nemesis(self, fleet: Fleet, proxy: Links, seed: int, *, harms_broker: bool) -> Nemesis:
        chance = Random(seed)
        faults = ClusterFaults(self._brokers, self._pair, proxy, self._objects, fleet)
        weights = WEIGHTS
        if self._objects is not None:
            weights = weights | OBJECT_FAULTS | LINK_TO_OBJECTS_FAULTS
        return Nemesis(faults, weights, chance, chance.choice(RESTS_S), self._say)


@contextmanager
def cluster(
    directory: Path, *, objects: bool = False
) -> Iterator[tuple[Brokers, Pair, Links, Objects | None]]:
    """Brokers that run, and what they are on; what all of them have said is in the directory.

    ``objects``: large flushes are in an object store, which fails, too.
    """
    with ExitStack() as stack:
        links, pair = stack.enter_context(Links()), stack.enter_context(Pair())
        stack.callback(pair.keep_output, directory)
        store = stack.enter_context(Objects.running(directory, links)) if objects else None
        members = [
            _member(directory / f"broker-{number}", number, pair, links, store)
            for number in range(1, BROKERS + 1)
        ]
        stack.enter_context(running(members))
        yield Brokers(members), pair, links, store


def _member(
    directory: Path, number: int, pair: Pair, links: Links, store: Objects | None
) -> LinkedMember:
    if store is None:
        return LinkedMember(directory, number, pair, links, **SETTINGS)
    settings = store.settings_for(number) | SETTINGS
    return HurriedMember(directory, number, pair, links, **settings)


def torment(
    directory: Path,
    seed: int,
    duration_s: float,
    say: Say,
    kinds: Sequence[Kind] = KINDS,
    *,
    objects: bool = False,
) -> Outcome:
    """Do one round; what it leaves is in the directory, too. ``objects``: see ``cluster``."""
    with cluster(directory, objects=objects) as (brokers, pair, links, store):
        torture = ClusterTorture(brokers, pair, links, store, directory, say, kinds)
        outcome = torture.run(seed, duration_s, harms_broker=True)
        if store is not None:
            say(store.summary())
            outcome.wrong += store.complaints(pair)
        outcome.wrong += brokers.complaints()
        if (stuck_s := outcome.report.stuck_s) > MOST_STUCK_S:
            outcome.wrong.append(f"what was committed was not read for {stuck_s:.1f} s")
    return outcome


def main() -> int:
    """Torment clusters; exit 0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.postgresql.cluster_nemesis")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60, help="of faults in a round")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--go-on", action="store_true", help="after a round with something wrong")
    parser.add_argument("--objects", action="store_true", help="with an object store that fails")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    # Leave no server behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started_s = time.monotonic()
    wrong: list[int] = []

    def say(text: str) -> None:
        print(f"{time.monotonic() - started_s:7.1f} s  {text}", flush=True)

    for seed in range(arguments.seed, arguments.seed + arguments.rounds):
        directory = Path(tempfile.mkdtemp(prefix=f"nemesis-{seed}-"))
        say(f"seed {seed}, in {directory}")
        if is_right(directory, seed, arguments.seconds, say, objects=arguments.objects):
            shutil.rmtree(directory)
            continue
        say(f"kept: {directory}")
        wrong.append(seed)
        if not arguments.go_on:
            break
    print(f"wrong: {wrong or 'nothing'}")
    return 1 if wrong else 0


def is_right(
    directory: Path, seed: int, duration_s: float, say: Say, *, objects: bool = False
) -> bool:
    """Run one round, and print its outcome."""
    try:
        outcome = torment(directory, seed, duration_s, say, objects=objects)
    except Exception:  # noqa: BLE001  Of each library that is used here, and each is a finding.
        # A broker ended by itself, or a condition was not met in time.
        traceback.print_exc()
        return False
    print("\n".join(outcome.lines()), flush=True)
    return not (outcome.report.violations or outcome.wrong)


if __name__ == "__main__":
    sys.exit(main())
