"""`dump-log` beside Kafka's DumpLogSegments on the same files, `check` on both brokers'."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.broker.cli.inline import Ended
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.kafka_tools import DUMP_LOG_SEGMENTS, run_tool
from tests.interop.command_line import CommandLine, run
from tests.interop.dump import SUFFIXES
from tests.products import BARNABAS_AND_KAFKA
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
SMALL = ("-X", "segment.bytes=1048576", "-X", "index.interval.bytes=1024")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LINES = 2800
NONE = "OptionalLong.empty"
TIMEOUT_S = 60


def fill(barnabas: CommandLine) -> None:
    """Several segments in all codecs."""
    assert barnabas("topics", "create", "plain", *SMALL).exit_code == 0
    for number, codec in enumerate(CODECS):
        lines = [f"{number}.{line} {'x' * 500}" for line in range(LINES)]
        arguments = ("-z", codec, "-H", "h=1") if number % 2 else ("-z", codec, "--acks", "1")
        assert barnabas.lines_of(lines, "produce", "plain", *arguments).exit_code == 0


def fill_with_transactions(barnabas: CommandLine) -> None:
    """Committed and aborted ones, and one that is left open."""
    assert barnabas("topics", "create", "transactions").exit_code == 0
    for name, ends in (("one", ["commit", "abort", "commit"]), ("two", ["abort", "leave"])):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": barnabas.broker.bootstrap_servers, "transactional.id": name}
        )
        producer.init_transactions(TIMEOUT_S)
        for number, end in enumerate(ends):
            producer.begin_transaction()
            for index in range(5):
                producer.produce("transactions", f"{end} {name} {number} {index}")
            assert producer.flush(TIMEOUT_S) == 0
            if end == "commit":
                producer.commit_transaction(TIMEOUT_S)
            elif end == "abort":
                producer.abort_transaction(TIMEOUT_S)


def consume_in_a_group(barnabas: CommandLine) -> None:
    assert barnabas("consume", "plain", "-g", "readers", "-o", "beginning", "-n", 10).exit_code == 0


@pytest.fixture(scope="module", params=BARNABAS_AND_KAFKA)
def written(request, tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """Return the data directory of a broker that was filled and stopped."""
    directory = tmp_path_factory.mktemp(request.param)
    kind = {"barnabas": BarnabasProcess, "kafka": ApacheKafka}[request.param]
    with kind(directory, group_initial_rebalance_delay_ms="0") as broker:
        barnabas = CommandLine(broker)
        fill(barnabas)
        consume_in_a_group(barnabas)
        fill_with_transactions(barnabas)
        check_isolation(barnabas)
        broker.terminate()
        yield request.param, broker.data_directory


def check_isolation(barnabas: CommandLine) -> None:
    """Check the output of `consume` for transactions, while the broker runs."""
    words = ("consume", "transactions", "-o", "beginning", "-e")
    # A commit is acknowledged when it is decided: its markers follow. Before, less is read.
    wait_until(lambda: len(committed_by(barnabas(*words))) == 10, "the markers")
    ran = barnabas(*words)
    assert "since a transaction is open" in ran.stderr
    committed = committed_by(ran)
    everything = barnabas(*words, "--isolation", "read_uncommitted").lines
    assert [line for line in everything if line.startswith("commit")] == committed
    assert len(committed) == 10
    assert len(everything) == 25


def committed_by(ran: Ended) -> list[str]:
    """Return the records that `consume` printed beside an open transaction."""
    assert ran.exit_code == 0
    return ran.stdout.splitlines()


def dumped(files: list[Path]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of ``barnabas dump-log``, by file."""
    ran = run("dump-log", "--format", "json", "--records", *files)
    assert ran.stderr == ""
    found: dict[str, list[dict[str, Any]]] = {str(path): [] for path in files}
    for row in ran.json_lines:
        found[row.pop("file")].append(row)
    return found


def kafka_dumped(files: list[Path]) -> dict[str, list[str]]:
    """Return the lines of Kafka's tool, by file."""
    arguments = ["--deep-iteration", "--files", ",".join(map(str, files))]
    result = run_tool(DUMP_LOG_SEGMENTS, *arguments, timeout_s=300)
    assert result.exit_code == 0
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in result.output.splitlines():
        if line.startswith("Dumping "):
            current = found.setdefault(line.removeprefix("Dumping "), [])
        else:
            current.append(line)
    return found


def numbers(line: str) -> dict[str, str]:
    """Read `name: value name: value`."""
    return dict(re.findall(r"(\w+): (\S+)", line))


def lower(value: object) -> str:
    return str(value).lower()


def batch_as_kafka_says(row: dict[str, Any]) -> dict[str, str]:
    return {
        "baseOffset": str(row["base_offset"]),
        "lastOffset": str(row["last_offset"]),
        "count": str(row["count"]),
        "baseSequence": str(row["base_sequence"]),
        "lastSequence": str(row["last_sequence"]),
        "producerId": str(row["producer_id"]),
        "producerEpoch": str(row["producer_epoch"]),
        "partitionLeaderEpoch": str(row["leader_epoch"]),
        "isTransactional": lower(row["transactional"]),
        "isControl": lower(row["control"]),
        "deleteHorizonMs": NONE,
        "position": str(row["position"]),
        row["timestamp_type"]: str(row["max_timestamp"]),
        "size": str(row["size"]),
        "magic": "2",
        "compresscodec": row["compression"],
        "crc": str(row["crc"]),
        "isvalid": lower(row["valid"]),
    }


def optional(value: int) -> str:
    return f"OptionalLong[{value}]" if value >= 0 else NONE


def producer_as_kafka_says(row: dict[str, Any]) -> dict[str, str]:
    return {
        "producerId": str(row["producer_id"]),
        "producerEpoch": str(row["producer_epoch"]),
        "coordinatorEpoch": str(row["coordinator_epoch"]),
        "currentTxnFirstOffset": optional(row["transaction_first_offset"]),
        "lastTimestamp": str(row["last_timestamp"]),
    }


def test_the_same_numbers_as_dump_log_segments(written):
    _, directory = written
    files = sorted(
        path
        for topic in ("plain-0", "transactions-0")
        for path in (directory / topic).iterdir()
        if path.suffix in SUFFIXES
    )
    theirs, ours = kafka_dumped(files), dumped(files)
    assert len([path for path in files if path.match("plain-0/*.log")]) > 1
    compared = set()
    for path in files:
        rows, lines = ours[str(path)], theirs[str(path)]
        compared |= {(path.suffix, len(rows) > 0)}
        match path.suffix:
            case ".log":
                compare_log(rows, lines)
            case ".index":
                said = [numbers(line) for line in lines if line.startswith("offset")]
                assert said == [
                    {"offset": str(row["offset"]), "position": str(row["position"])} for row in rows
                ] or (said, rows) == ([{"offset": str(int(path.stem)), "position": "0"}], [])
            case ".timeindex":
                said = [numbers(line) for line in lines if line.startswith("timestamp")]
                assert said == [
                    {"timestamp": str(row["timestamp"]), "offset": str(row["offset"])}
                    for row in rows
                ]
            case ".txnindex":
                said = [numbers(line) for line in lines]
                assert said == [
                    {
                        "version": str(row["version"]),
                        "producerId": str(row["producer_id"]),
                        "firstOffset": str(row["first_offset"]),
                        "lastOffset": str(row["last_offset"]),
                        "lastStableOffset": str(row["last_stable_offset"]),
                    }
                    for row in rows
                ]
            case ".snapshot":
                said = [numbers(line) for line in lines if line.startswith("producerId")]
                wanted = {line["producerId"]: line for line in said}
                assert len(wanted) == len(rows)
                for row in rows:
                    line = wanted[str(row["producer_id"])]
                    mine = producer_as_kafka_says(row)
                    assert {name: line[name] for name in mine} == mine
    assert {(suffix, True) for suffix in SUFFIXES} <= compared


def compare_log(rows: list[dict[str, Any]], lines: list[str]) -> None:
    """Batches with every field, records and markers by their offsets and sizes."""
    said = [numbers(line) for line in lines if line.startswith("baseOffset")]
    assert said == [batch_as_kafka_says(row) for row in rows if row["row"] == "batch"]
    records = [numbers(line[2:]) for line in lines if line.startswith("| ")]
    ours = [row for row in rows if row["row"] in {"record", "marker"}]
    assert [record["offset"] for record in records] == [str(row["offset"]) for row in ours]
    for record, row in zip(records, ours, strict=True):
        if row["row"] == "marker":
            assert record["endTxnMarker"] == row["type"]
            assert record["coordinatorEpoch"] == str(row["coordinator_epoch"])
        else:
            assert record["CreateTime"] == str(row["timestamp"])
            assert record["valueSize"] == str(len(row["value"]))


def test_records_of_internal_topics_are_decoded(written):
    _, directory = written
    logs = sorted(directory.glob("__consumer_offsets-*/*.log"))
    filled = [path for path in logs if path.stat().st_size]
    assert filled
    meanings = [
        row["meaning"] for rows in dumped(filled).values() for row in rows if row["row"] == "record"
    ]
    commits = [each for each in meanings if each["kind"] == "OffsetCommit"]
    assert {"group": "readers", "topic": "plain", "partition": 0} in [
        each["key"] for each in commits
    ]
    assert commits[-1]["value"]["offset"] == 10
    groups = [each for each in meanings if each["kind"] == "GroupMetadata"]
    assert groups[-1]["key"] == {"group": "readers"}
    assert groups[-1]["value"]["protocol_type"] == "consumer"


def test_nothing_is_damaged(written):
    _, directory = written
    ran = run("dump-log", "-q", directory)
    assert (ran.exit_code, ran.stderr) == (0, "")


def test_check(written):
    kind, directory = written
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    found = run("check", "-d", directory, "--format", "json").json
    assert found["stopped"] == {"barnabas": "clean", "kafka": "kafka"}[kind]
    ends = {(each["topic"], each["partition"]): each["end_offset"] for each in found["partitions"]}
    assert ends["plain", 0] == len(CODECS) * LINES
    assert all(each["problems"] == [] for each in found["partitions"])
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
