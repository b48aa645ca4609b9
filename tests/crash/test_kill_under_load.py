"""kill -9 under load and during recovery: acknowledged records exist once, in their place.

Clients by wire write batches of all sizes, with and without idempotence, and transactions of both
protocols, transform, commit offsets, and abandon transactions (KAFKA-20734: Apache Kafka 4.3.0 on
one node tears and hangs transactions here). After kills the logs must not contradict each other; in
the end the history of the clients has to be sound, also after one more kill.
"""

from __future__ import annotations

import threading
import time
from random import Random

import pytest

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.wire_client import WireClient
from tests.crash.amounts import amounts
from tests.crash.test_crash_table import SETTINGS
from tests.crash.transaction_client import history
from tests.history.model import COMMITTED, OK
from tests.requests import create_topic
from tests.waiting import wait_until
from tests.workload.settings import PARTITIONS, PATIENT_MS, TOPICS, Kind
from tests.workload.simulated import Workload, assert_sound

LOGS_EVERY = 5
"""Kills from one look at the logs to the next."""
OPERATIONS_AT_LEAST = 20
"""The least number of operations before a kill; some kills have no load between them.
"""
MORE_SETTINGS = {"barnabas.checkpoint.interval.ms": "300", "log.segment.bytes": str(2 << 20)}
PADS = (0, 0, 0, 500, 5_000, 20_000, 50_000)
"""Bytes: below and above what is copied, kept by reference, and received outside the ring."""
KINDS = tuple(
    kind if kind.role == "abandoner" else kind._replace(transaction_timeout_ms=PATIENT_MS)
    for kind in (
        Kind("bulk", "wire"),
        Kind("bulk", "wire"),
        Kind("bulk", "wire_plain"),
        Kind("bulk", "wire_plain"),
        Kind("writer", "wire_classic"),
        Kind("writer", "wire"),
        Kind("abandoner", "wire_classic"),
        Kind("abandoner", "wire"),
        Kind("transformer", "wire_classic"),
        Kind("transformer", "wire"),
        Kind("committer", "wire"),
        Kind("reader", "wire", isolation=COMMITTED),
    )
)


def kill_during_recovery(broker: BarnabasProcess, random: Random) -> None:
    """Start the broker and kill it at any moment of its start."""
    start = threading.Thread(target=_start_until_killed, args=(broker,))
    start.start()
    time.sleep(random.uniform(0.02, 0.5))
    broker.kill()
    start.join()
    broker.kill()  # On a busy machine the process may have been born after the first one.


def _start_until_killed(broker: BarnabasProcess) -> None:
    """Returns normally only when the kill came after the start had ended."""
    try:
        broker.restart()
    except BrokerDied as error:
        if "exited -9" not in str(error):
            raise


def work_for_a_while(workload: Workload, seconds: float) -> None:
    """Wait ``seconds``, and longer if the clients completed too few operations."""
    enough = sum(workload.done.values()) + OPERATIONS_AT_LEAST
    time.sleep(seconds)
    wait_until(lambda: sum(workload.done.values()) >= enough, lambda: workload.done)
    workload.raise_errors()


def check_logs(broker: BarnabasProcess) -> None:
    """Check that the logs contradict neither each other nor themselves."""
    with WireClient(broker) as client:
        history(client)


def kill_again_and_again(
    broker: BarnabasProcess, workload: Workload, random: Random, wanted: int
) -> int:
    """Kill the broker under load; return how often."""
    kills, checked = 0, 0
    while kills < wanted:
        work_for_a_while(workload, random.uniform(0.05, 0.6))
        broker.kill()
        kills += 1
        while random.random() < 0.4:
            kill_during_recovery(broker, random)
            kills += 1
        broker.restart()
        if kills >= checked + LOGS_EVERY:
            with workload.held():
                check_logs(broker)
            checked = kills
    return kills


@pytest.mark.slow
@pytest.mark.timeout(900)
@amounts("kills_wanted", in_test=6, at_night=40)
def test_acknowledged_records_survive_kills(kills_wanted):
    seed = 20
    print(f"seed {seed}")
    with BarnabasProcess(**SETTINGS | MORE_SETTINGS) as broker:
        with WireClient(broker) as client:
            for topic in TOPICS:
                create_topic(client, topic, PARTITIONS)
        with Workload(broker.bootstrap_servers, seed, 0.05, KINDS, PADS) as workload:
            workload.goes_on()
            kills = kill_again_and_again(broker, workload, Random(seed), kills_wanted)
            workload.end()
        found = workload.judge()
        with WireClient(broker) as client:
            history(client).check_complete()
        broker.kill()
        broker.restart()
        found += workload.read("after-kill")
        assert_sound(found)
    acknowledged = sum(each.outcome == OK for each in found)
    print(f"{kills} kills, {acknowledged} operations acknowledged, {workload.done}")
    assert acknowledged > 10 * kills, "the kills came before anything happened"
