"""Three brokers, PostgreSQL and its standby, the torture's clients, and everything that can happen.

`python -m tests.postgresql.cluster_nemesis --rounds 20 --seed 7 --seconds 60`: each round has a
cluster of its own and the seed after the last one's. The torture's judge judges: what clients wrote
down, transactions that do not end, what is there after all brokers were killed. And no broker may
end by itself, nor log an error that it does not know how to handle.
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from tests.counterparts.postgresql_servers import Pair
from tests.history.model import COMMITTED, UNCOMMITTED
from tests.postgresql.brokers import LEASE_MS, LinkedMember, running
from tests.postgresql.links import Between, Cut, Links
from tests.torture.nemesis import NOT_NOW, Nemesis
from tests.torture.process_brokers import ProcessBrokers
from tests.torture.torture import Outcome, Say, Torture
from tests.workload.access import BROKER_SETTINGS, Access
from tests.workload.fleet import Fleet
from tests.workload.settings import TRANSACTION_TIMEOUT_MS, Kind

BROKERS = 3
LEASE_S = LEASE_MS / 1000
PAUSE_S = (0.5 * LEASE_S, 2.5 * LEASE_S)
"""For less than a lease, and for more."""
RESTS_S = ((0.1, 1), (0.5, 2), (1, 4))
"""From one fault to the next: in some rounds little is ever whole, in others much gets done."""
WAIT_FOR_STANDBY_S = 3
MOST_STUCK_S = 2 * (TRANSACTION_TIMEOUT_MS / 1000 + LEASE_S + 3)
"""What is committed is read after a transaction before it has timed out and its coordinator was
taken over from (the lease and 3 s more), twice as long on a busy machine."""
OURS = "FROM pg_stat_activity WHERE application_name = 'barnabas'"
WAITS = "wait_event = 'SyncRep'"

CLIENT_FAULTS = {"kill_client": 1, "add_twin": 1, "pause_client": 2}
BROKER_FAULTS = {"kill_broker": 4, "stop_broker": 2, "pause_broker": 3}
LINK_FAULTS = {"cut_brokers": 3, "cut_off_broker": 2, "cut_store": 3}
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
    """The brokers of a cluster, killed and started together where nobody is meant."""

    def complaints(self) -> list[str]:
        """Return what brokers have logged that nobody should have to read."""
        return [
            f"broker {each.number}: {line}"
            for each in self.members
            for line in each.output_path.read_text(errors="replace").splitlines()
            if any(sign in line for sign in COMPLAINTS)
        ]


class ClusterNemesis(Nemesis):
    """Makes faults of brokers, links, servers and clients, several at a time."""

    def __init__(
        self, brokers: Brokers, pair: Pair, links: Links, fleet: Fleet, seed: int, say: Say
    ) -> None:
        super().__init__(brokers, fleet, links, seed, harms_broker=True, say=say)
        self._weights = CLIENT_FAULTS | BROKER_FAULTS | LINK_FAULTS | STORE_FAULTS
        self._rest_s = self._chance.choice(RESTS_S)
        self._members = brokers.members
        self._pair = pair
        self._links = links
        self._under_way: dict[object, Future[None]] = {}
        """What something happens to: a broker, a link, or the pair."""
        self._threads = ThreadPoolExecutor()

    def run(self, duration_s: float) -> None:
        """Make faults until the time is up, then let every one come to its end."""
        try:
            super().run(duration_s)
        finally:
            self._threads.shutdown()
        for future in self._under_way.values():
            future.result()

    # -- brokers -----------------------------------------------------------------------------------

    def kill_broker(self) -> str | None:
        member = self._free_member()
        away_s = self._chance.choice((0, 0, 2 * LEASE_S))

        def kill() -> None:
            member.kill()
            time.sleep(away_s)
            member.restart()

        return self._begin(member, kill)

    def stop_broker(self) -> str | None:
        member = self._free_member()

        def stop() -> None:
            status = member.terminate()
            assert status == 0, f"broker {member.number} ended with {status}: {member.output()}"
            member.restart()

        return self._begin(member, stop)

    def pause_broker(self) -> str | None:
        member, pause_s = self._free_member(), self._chance.uniform(*PAUSE_S)

        def pause() -> None:
            member.pause()
            time.sleep(pause_s)
            member.resume()

        return self._begin(member, pause)

    # -- links -------------------------------------------------------------------------------------

    def cut_brokers(self) -> str | None:
        """Between two of them, in one direction or both."""
        one, other = self._chance.sample(self._members, 2)
        links = [one.to(other), other.to(one)]
        return self._cut(links[: self._chance.randint(1, 2)])

    def cut_off_broker(self) -> str | None:
        """A broker reaches nobody, and only clients reach it."""
        one = self._chance.choice(self._members)
        others = [each for each in self._members if each is not one]
        among = [link for each in others for link in (one.to(each), each.to(one))]
        return self._cut([*among, *one.to_store()])

    def cut_store(self) -> str | None:
        return self._cut(self._chance.choice(self._members).to_store())

    def _cut(self, links: Sequence[Between]) -> str | None:
        cut_s, how = self._chance.uniform(*PAUSE_S), self._chance.choice(list(Cut))
        if any(self._is_under_way(link) for link in links):
            return NOT_NOW

        def cut() -> None:
            self._links.cut(links, how)
            time.sleep(cut_s)
            self._links.mend(links)

        future = self._threads.submit(cut)
        self._under_way |= dict.fromkeys(links, future)
        return None

    # -- PostgreSQL --------------------------------------------------------------------------------

    def end_connections(self) -> str | None:
        return self._to_store(
            lambda: self._pair.primary.execute(f"SELECT pg_terminate_backend(pid) {OURS}")
        )

    def cancel_statements(self) -> str | None:
        return self._to_store(
            lambda: self._pair.primary.execute(f"SELECT pg_cancel_backend(pid) {OURS}")
        )

    def end_waits_for_the_standby(self) -> str | None:
        """What they waited for can be seen then, and is nowhere else."""
        hows = self._chance.sample(["terminate", "cancel"], 2)

        def end_waits() -> None:
            self._pair.cut()
            for how in hows:
                self._wait_for_one_that_waits()
                self._pair.primary.execute(f"SELECT pg_{how}_backend(pid) {OURS} AND {WAITS}")
            self._pair.mend()

        return self._to_store(end_waits)

    def crash_store(self) -> str | None:
        def crash() -> None:
            self._pair.primary.crash()
            self._pair.primary.start()

        return self._to_store(crash)

    def fail_over(self) -> str | None:
        is_cut_before = self._chance.random() < 0.5

        def fail_over() -> None:
            if is_cut_before:
                self._pair.cut()
                self._wait_for_one_that_waits()
            self._pair.fail_over()

        return self._to_store(fail_over)

    def split(self) -> str | None:
        """The old primary lives on; who waits there is not answered, but not held back either."""
        pauses_s = [self._chance.uniform(0.1, 1) for _ in range(self._chance.randint(2, 5))]

        def split() -> None:
            self._pair.cut()
            self._wait_for_one_that_waits()
            old = self._pair.split()
            for pause_s in pauses_s:
                old.terminate_waiting()
                time.sleep(pause_s)
            self._pair.follow()

        return self._to_store(split)

    def fence(self) -> str | None:
        """A session is ended, and its broker hears of it when it writes something."""
        chance = self._chance.random()

        def fence() -> None:
            sessions = self._pair.primary.execute(
                "SELECT session_id FROM barnabas.sessions WHERE state <> 'fenced' ORDER BY 1"
            )
            if sessions:
                (session,) = sessions[int(chance * len(sessions))]
                self._pair.primary.execute("SELECT barnabas.fence(%s)", session)

        return self._to_store(fence)

    def set_store_clock(self) -> str | None:
        """The server's clock is set by an hour: what was noted by it is as far away."""
        hours = self._chance.choice((-1, 1))
        shifted = f"lease_until - {hours} * interval '1 hour'"
        return self._to_store(
            lambda: self._pair.primary.execute(
                f"UPDATE barnabas.leases SET lease_until = {shifted}"
            )
        )

    def _wait_for_one_that_waits(self) -> None:
        """Give brokers a while to write something; all of them may be away."""
        until_s = time.monotonic() + WAIT_FOR_STANDBY_S
        question = f"SELECT count(*) > 0 FROM pg_stat_activity WHERE {WAITS}"
        while time.monotonic() < until_s:
            if self._pair.primary.execute(question) == [(True,)]:
                return
            time.sleep(0.02)

    def _to_store(self, happen: Callable[[], object]) -> str | None:
        return self._begin(self._pair, happen)

    # -- what is under way -------------------------------------------------------------------------

    def _free_member(self) -> LinkedMember:
        """Return a broker that nothing happens to, if there is one."""
        free = [each for each in self._members if not self._is_under_way(each)]
        return self._chance.choice(free or self._members)

    def _is_under_way(self, what: object) -> bool:
        future = self._under_way.get(what)
        return future is not None and not future.done()

    def _begin(self, what: object, happen: Callable[[], object]) -> str | None:
        """Have something happen, unless something happens there already."""
        if self._is_under_way(what):
            return NOT_NOW
        self._under_way[what] = self._threads.submit(happen)
        return None

    def _supervise(self) -> None:
        for what, future in self._under_way.items():
            if future.done():
                error = future.exception()
                assert error is None, f"{what}: {error!r}"
        for each in self._members:
            is_meant = self._is_under_way(each)
            assert is_meant or each.is_running, f"broker {each.number} ended: {each.output()}"
        self._supervise_clients()


class ClusterTorture(Torture):
    """One round of the torture on a cluster that runs."""

    def __init__(
        self,
        brokers: Brokers,
        pair: Pair,
        links: Links,
        directory: Path,
        say: Say,
        kinds: Sequence[Kind],
    ) -> None:
        super().__init__(brokers, Access(brokers.bootstrap_servers), directory, say, kinds)
        self._brokers = brokers
        self._pair = pair
        self._links = links

    def proxy(self, seed: int) -> nullcontext[Links]:
        return nullcontext(self._links)

    def nemesis(self, fleet: Fleet, proxy: Links, seed: int, *, harms_broker: bool) -> Nemesis:
        return ClusterNemesis(self._brokers, self._pair, proxy, fleet, seed, self._say)


@contextmanager
def cluster(directory: Path) -> Iterator[tuple[Brokers, Pair, Links]]:
    """Brokers that run, and what they are on; what all of them have said is in the directory."""
    with ExitStack() as stack:
        links, pair = stack.enter_context(Links()), stack.enter_context(Pair())
        stack.callback(pair.keep_output, directory)
        members = [
            LinkedMember(directory / f"broker-{number}", number, pair, links, **BROKER_SETTINGS)
            for number in range(1, BROKERS + 1)
        ]
        stack.enter_context(running(members))
        yield Brokers(members), pair, links


def torment(
    directory: Path, seed: int, duration_s: float, say: Say, kinds: Sequence[Kind] = KINDS
) -> Outcome:
    """Do one round; what it leaves is in the directory, too."""
    with cluster(directory) as (brokers, pair, links):
        torture = ClusterTorture(brokers, pair, links, directory, say, kinds)
        outcome = torture.run(seed, duration_s, harms_broker=True)
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
        if is_right(directory, seed, arguments.seconds, say):
            shutil.rmtree(directory)
            continue
        say(f"kept: {directory}")
        wrong.append(seed)
        if not arguments.go_on:
            break
    print(f"wrong: {wrong or 'nothing'}")
    return 1 if wrong else 0


def is_right(directory: Path, seed: int, duration_s: float, say: Say) -> bool:
    """Do one round, and print what came of it."""
    try:
        outcome = torment(directory, seed, duration_s, say)
    except Exception:  # noqa: BLE001  Of each library that is used here, and each is a finding.
        # Who ended by itself, or what was waited for in vain.
        traceback.print_exc()
        return False
    print("\n".join(outcome.lines()), flush=True)
    return not (outcome.report.violations or outcome.wrong)


if __name__ == "__main__":
    sys.exit(main())
