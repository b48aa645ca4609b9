"""Filled directories of the start rows: their objects and sizes."""

import asyncio

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.server import BrokerServer
from tests.bench import report
from tests.bench.fill import Amount, filled
from tests.bench.run import Results
from tests.bench.starts import StartMeasurement, start_rows


def test_a_directory_is_filled_as_asked_and_left_as_by_a_kill(tmp_path):
    filled(str(tmp_path), Amount(30, 40, 50, 60, 3_000_000))

    async def look():
        config = BrokerConfig(
            listeners=("PLAINTEXT://127.0.0.1:0",), http_listener="", log_dirs=(str(tmp_path),)
        )
        server = BrokerServer(config)
        await server.start()
        try:
            logs = [log for log in server.logs.logs.values() if log.topic.startswith("many-")]
            groups = [key for machine in server.groups.machines for key in machine.keys()]  # noqa: SIM118
            return (
                len(logs),
                len(groups),
                len(server.transactions.all),
                sum(len(list(log.producers.entries())) for log in logs),
                sum(log.size_bytes for log in logs) > 2_000_000,
                server.recovery.batches > 0,
            )
        finally:
            await server.stop()

    assert asyncio.run(look()) == (30, 40, 50, 60, True, True)


def test_the_rows_say_what_was_measured_and_whether_it_was_fast_enough():
    many, log = start_rows(20, quick=False)
    assert many.title == "20,000 partitions, 100,000 groups, transactional ids and producers"
    assert log.title == "20 GB of log"
    assert start_rows(1, quick=True)[0].amount.partitions == 2000
    measured = {
        many.key: StartMeasurement(9.5, 4.0, 6.0, 400_000_000),
        log.key: StartMeasurement(3.0, 1.0, 2.0, 90_000_000),
    }
    lines = report.start_table(Results(starts=measured), [many, log])
    rows = [[cell.strip() for cell in line.strip("|").split("|")][1:] for line in lines[2:]]
    assert rows == [
        ["start", "6.00", "<= 5.0", "missed"],
        ["stop", "4.00", "<= 10.0", "met"],
        ["start after kill -9", "9.50", "", ""],
        ["memory, 400 MB", "", "", ""],
        ["start", "2.00", "", ""],
        ["stop", "1.00", "", ""],
        ["start after kill -9", "3.00", "", ""],
        ["memory, 90 MB", "", "", ""],
    ]
