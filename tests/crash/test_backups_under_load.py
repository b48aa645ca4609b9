"""`barnabas backup` at random moments under transactions of both protocols.

Each backup is what a power cut at its moment would have left: a broker starts from it, the logs
contradict neither each other nor what the clients had received by then, and no transaction is torn.
A checkpoint after each MiB of journal overtakes many a pass of a backup; a slow machine slows both.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from barnabas.storage.runtime.clock import counter_ns
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.wire_client import WireClient
from tests.crash.amounts import amounts
from tests.crash.test_crash_table import SETTINGS
from tests.crash.transaction_client import history
from tests.history.model import COMMITTED, OK, TRANSACTION, History, as_of
from tests.requests import create_topic
from tests.seeds import SEED
from tests.workload.drivers.wire import addresses_of
from tests.workload.judge import wait_for_ends
from tests.workload.settings import PARTITIONS, PATIENT_MS, TOPICS, Kind
from tests.workload.simulated import Workload, assert_sound
from tests.workload.wire_transactions import IMPLICIT, Transactional

REST_S = 0.15
"""Thousands more transactions would only take long to judge."""
PADS = (4_000, 16_000)
"""Sizes with which checkpoints overtake a pass."""
KINDS = tuple(
    kind._replace(transaction_timeout_ms=PATIENT_MS)
    for kind in (
        Kind("writer", "wire_classic"),
        Kind("writer", "wire_classic"),
        Kind("writer", "wire"),
        Kind("writer", "wire"),
        Kind("transformer", "wire_classic"),
        Kind("transformer", "wire"),
        Kind("sender", "wire"),
        Kind("bulk", "wire"),
        Kind("reader", "wire", isolation=COMMITTED),
    )
)


def barnabas(*arguments: object) -> str:
    command = [sys.executable, "-m", "barnabas", *map(str, arguments)]
    environment = BarnabasProcess.python_environment()
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout


def take_backups(broker: BarnabasProcess, directory: Path, count: int) -> dict[int, Path]:
    """Return the backups by the times at which they started."""
    backups = {}
    random = Random(SEED)
    for number in range(count):
        time.sleep(random.uniform(0.05, 0.6))
        begun_ns, backup = counter_ns(), directory / f"backup-{number}"
        print(barnabas("backup", backup, "-d", broker.data_directory), end="")
        backups[begun_ns] = backup
    return backups


def judge(backup: Path, known: History, workload: Workload, directory: Path) -> None:
    """Start from a backup; judge what is found, then what becomes of it."""
    print(barnabas("restore", backup, directory / "data"), end="")
    with BarnabasProcess(directory, **SETTINGS) as broker:
        addresses = addresses_of(broker.bootstrap_servers)
        with WireClient(broker) as client:
            history(client)
            # What was open is aborted, what was decided is completed.
            for name in sorted({each.producer for each in known if each.kind == TRANSACTION}):
                producer = Transactional(name, addresses, SEED, IMPLICIT)
                producer.init()
                producer.close()
            wait_for_ends(addresses)
            history(client).check_complete()
        assert_sound([*known, *workload.read("restored", broker.bootstrap_servers)])


@pytest.mark.slow
@pytest.mark.timeout(900)
@amounts("backups", in_test=3, at_night=20)
def test_backups_under_transactions(tmp_path, backups):
    print(f"seed {SEED}")
    settings = SETTINGS | {"barnabas.checkpoint.journal.bytes": str(1 << 20)}
    with BarnabasProcess(tmp_path / "original", **settings) as broker:
        with WireClient(broker) as client:
            for topic in TOPICS:
                create_topic(client, topic, PARTITIONS)
        with Workload(broker.bootstrap_servers, SEED, REST_S, KINDS, PADS) as workload:
            workload.goes_on()
            taken = take_backups(broker, tmp_path, backups)
            workload.end()
        found = workload.history()
    for number, (begun_ns, backup) in enumerate(taken.items()):
        judge(backup, [*as_of(found, begun_ns)], workload, tmp_path / f"restored-{number}")
    committed = sum(each.kind == TRANSACTION and each.outcome == OK for each in found)
    print(f"{backups} backups, {committed} transactions committed")
    assert committed > 5 * backups
