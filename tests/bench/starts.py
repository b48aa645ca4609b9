"""Duration of a start, a stop and a recovery with many partitions, and with much log."""

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from tests.bench.fill import TIMEOUT_MS, Amount
from tests.bench.load import RequestFailed
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST

GIGABYTE = 1_000_000_000
FILL_TIMEOUT_S = 1800
LOAD_TIMEOUT_S = 120
SAMPLES = 64
"""Number of ids in the queries: they are in most partitions of the internal topic."""
COORDINATOR_LOAD_IN_PROGRESS = 14


class StartRow(NamedTuple):
    """Content of a directory, and target times of a start and a stop with it."""

    key: str
    title: str
    amount: Amount
    start_s: float | None = None
    stop_s: float | None = None


class StartMeasurement(NamedTuple):
    """Seconds until all clients are served, or the process has ended, and memory in bytes."""

    recovery_s: float
    """A start after kill -9."""
    stop_s: float
    start_s: float
    """A start after the stop."""
    resident_bytes: int


def start_rows(log_gigabytes: int, *, quick: bool) -> list[StartRow]:
    """The rows; ``quick`` has a tenth of the partitions."""
    share = 10 if quick else 1
    many = Amount(*(each // share for each in Amount()[:4]))
    log = Amount(max(1, log_gigabytes), 0, 0, 0, log_gigabytes * GIGABYTE)
    each = f"{many.groups:,} groups, transactional ids and producers"
    return [
        StartRow("many-partitions", f"{many.partitions:,} partitions, {each}", many, 5.0, 10.0),
        StartRow("much-log", f"{log_gigabytes} GB of log", log),
    ]


def measure_starts(rows: Sequence[StartRow]) -> dict[str, StartMeasurement]:
    """Measure each row with a broker and a directory of its own, which is removed after it."""
    return {row.key: _measure(row) for row in rows}


def _measure(row: StartRow) -> StartMeasurement:
    print(f"  {row.title}", file=sys.stderr, flush=True)
    with BarnabasProcess() as broker:
        broker.terminate()
        _fill(broker.data_directory, row.amount)
        recovery_s = _start(broker, row.amount)
        stop_s = _stop(broker)
        start_s = _start(broker, row.amount)
        measured = StartMeasurement(recovery_s, stop_s, start_s, broker.resident_bytes())
        _stop(broker)
    return measured


def _fill(directory: Path, amount: Amount) -> None:
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < 2 * amount.log_bytes:
        raise OSError(f"{directory}: {free_bytes} bytes free are too few for {amount.log_bytes}")
    command = [sys.executable, "-m", "tests.bench.fill", str(directory), *map(str, amount)]
    subprocess.run(command, check=True, timeout=FILL_TIMEOUT_S, stderr=subprocess.DEVNULL)


def _stop(broker: BarnabasProcess) -> float:
    begun = time.monotonic()
    code = broker.terminate()
    if code:
        raise RequestFailed(f"{broker.name} ended with {code}: {broker.output()}")
    return time.monotonic() - begun


def _start(broker: BarnabasProcess, amount: Amount) -> float:
    """Start, and wait until the coordinator of transactions has read its topic."""
    begun = time.monotonic()
    broker.restart()
    samples = [f"transactional-id-{number}" for number in range(amount.transactional_ids)][:SAMPLES]
    with WireClient((HOST, broker.port)) as client:
        for transactional_id in samples:
            while _is_loading(client, transactional_id):
                if time.monotonic() - begun > LOAD_TIMEOUT_S:
                    raise RequestFailed(f"{transactional_id} is not loaded")
                time.sleep(0.01)
    return time.monotonic() - begun


def _is_loading(client: WireClient, transactional_id: str) -> bool:
    request = InitProducerIdRequest(transactional_id, TIMEOUT_MS)
    code = client.ask(INIT_PRODUCER_ID, request, 4).error_code
    if code not in {0, COORDINATOR_LOAD_IN_PROGRESS}:
        raise RequestFailed(f"InitProducerId answered error code {code}")
    return bool(code)
