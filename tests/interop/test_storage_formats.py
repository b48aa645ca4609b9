"""The file formats of `storage`, without a broker of Barnabas: Apache Kafka reads the files."""

from pathlib import Path

import confluent_kafka
import pytest

from barnabas.protocol.record_decoding import read_marker
from barnabas.protocol.records import Record, control_batch, encode_batch, iterate_batches
from barnabas.storage.log.checkpoint import encode_leader_epochs, encode_partition_metadata
from barnabas.storage.log.index import AbortedTransaction, SegmentIndex, TransactionIndex
from barnabas.storage.log.producer_snapshot import decode_snapshot, encode_snapshot
from barnabas.storage.log.producers import ProducerState
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.kafka_tools import DUMP_LOG_SEGMENTS, run_tool
from tests.interop.administration import create
from tests.interop.dump import complaints
from tests.products import for_the_night

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
NOW_MS = 1_790_000_000_000
BATCHES = 60
RECORDS = 25


class Writer:
    """One segment with its indexes and its producers, batch by batch."""

    def __init__(self) -> None:
        self.log = bytearray()
        self.index = SegmentIndex(0, 4096)
        self.transactions = TransactionIndex()
        self.producers = ProducerState()
        self.next_offset = 0

    def write(self, batch: bytes) -> None:
        """Append one batch that was encoded for `next_offset`."""
        ((_, header),) = iterate_batches(batch)
        self.index.append(header.last_offset, header.max_timestamp, len(self.log))
        self.log += batch
        self.next_offset = header.next_offset
        if header.is_control:
            self._end_transaction(batch)
        elif header.producer_id >= 0:
            self.producers.update(header, NOW_MS)

    def _end_transaction(self, batch: bytes) -> None:
        ((_, header),) = iterate_batches(batch)
        marker = read_marker(batch)
        completed = self.producers.end_transaction(
            header.producer_id, header.producer_epoch, marker.coordinator_epoch, marker.commit,
            header.base_offset, header.max_timestamp, NOW_MS,
        )  # fmt: skip
        if completed is not None and completed.aborted:
            self.transactions.append(
                AbortedTransaction(
                    completed.producer_id, completed.first_offset, completed.last_offset,
                    completed.last_stable_offset,
                )
            )  # fmt: skip

    def data(self, producer_id: int, sequence: int, number: int, **options) -> None:
        """Write a batch of records with one of the codecs in turn."""
        records = [
            Record(self.next_offset + i, NOW_MS + number * 10 + i, b"k%d" % i, b"%d " % i * 20,
                   (("header", b"value"), ("none", None)))
            for i in range(RECORDS)
        ]  # fmt: skip
        self.write(
            encode_batch(
                records, base_offset=self.next_offset, leader_epoch=3, compression=number % 5,
                producer_id=producer_id, producer_epoch=2, base_sequence=sequence, **options,
            )
        )  # fmt: skip

    def marker(self, producer_id: int, *, commit: bool) -> None:
        """Write the end of a transaction."""
        self.write(
            control_batch(
                producer_id, 2, commit=commit, coordinator_epoch=5, timestamp=NOW_MS + 10_000,
                base_offset=self.next_offset, leader_epoch=3,
            )
        )  # fmt: skip

    def save(self, directory: Path) -> list[Path]:
        """Write the partition directory; returns the files that Kafka's tool can judge."""
        directory.mkdir()
        self.index.seal()
        stem = directory / ("0" * 20)
        files = {
            stem.with_suffix(".log"): bytes(self.log),
            stem.with_suffix(".index"): self.index.offsets.encode(),
            stem.with_suffix(".timeindex"): self.index.times.encode(),
            stem.with_suffix(".txnindex"): self.transactions.encode(),
            directory / f"{self.next_offset:020}.snapshot": encode_snapshot(self.producers),
        }
        for path, content in files.items():
            path.write_bytes(content)
        (directory / "leader-epoch-checkpoint").write_bytes(encode_leader_epochs([(3, 0)]))
        (directory / "partition.metadata").write_bytes(encode_partition_metadata(bytes(range(16))))
        return list(files)


def fill(writer: Writer) -> None:
    """Every codec; four producers (none, idempotent, two transactional); all ends."""
    sequences = {10: 0, 11: 0, 12: 0}
    for number in range(BATCHES):
        producer = (-1, 10, 11, 12)[number % 4]
        if producer < 0:
            writer.data(-1, -1, number)
            continue
        writer.data(producer, sequences[producer], number, transactional=producer > 10)
        sequences[producer] += RECORDS
        if number % 16 == 15:
            writer.marker(11, commit=number == 31)
            writer.marker(12, commit=False)
    assert writer.producers.has_open_transaction(11)


def test_kafkas_tool_finds_no_fault_and_reads_the_same(tmp_path):
    writer = Writer()
    fill(writer)
    files = writer.save(tmp_path / "topic-0")
    assert complaints(files) == []
    output = run_tool(
        DUMP_LOG_SEGMENTS, "--files", ",".join(map(str, files)), "--deep-iteration"
    ).output
    assert output.count("endTxnMarker: ABORT") == 5
    assert output.count("endTxnMarker: COMMIT") == 1
    assert output.count("headerKeys: [header,none]") == BATCHES * RECORDS
    # Kafka's reading of the transaction index and of the producers, entry by entry.
    for entry in TransactionIndex.decode(writer.transactions.encode()):
        assert (
            f"producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        ) in output
    assert output.count("firstOffset:") == 5
    for row in writer.producers.producers():
        (line,) = [
            line for line in output.splitlines()
            if line.startswith(f"producerId: {row.producer_id} producerEpoch: {row.epoch} ")
            and "coordinatorEpoch" in line
        ]  # fmt: skip
        assert f"coordinatorEpoch: {row.coordinator_epoch} " in line
        assert f"lastTimestamp: {row.last_timestamp} " in line
        assert f"lastSequence: {row.last_sequence}" in line.replace("lastSeq:", "lastSequence:")


@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only"])
def test_kafkas_index_checks_pass(tmp_path, check):
    writer = Writer()
    fill(writer)
    stem = writer.save(tmp_path / "topic-0")[0]
    indexes = [str(stem.with_suffix(suffix)) for suffix in (".index", ".timeindex")]
    result = run_tool(DUMP_LOG_SEGMENTS, check, "--files", ",".join(indexes))
    assert result.exit_code == 0
    if check == "--index-sanity-check":
        assert result.output.count("passed sanity check") == 2
    assert "mismatch" not in result.output.lower()
    assert "not found" not in result.output.lower()


def described_producers(kafka: ApacheKafka, topic: str) -> set[tuple[str, ...]]:
    """Return the rows of `kafka-transactions.sh describe-producers`, a tuple for each producer."""
    result = run_tool(
        TRANSACTIONS, "--bootstrap-server", kafka.bootstrap_servers,
        "describe-producers", "--topic", topic, "--partition", "0",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("ProducerId"))
    return {tuple(line.split()) for line in lines[start + 1 :] if line.strip()}


@for_the_night(
    beside="tests/interop/test_storage_formats.py"
    "::test_kafkas_tool_finds_no_fault_and_reads_the_same"
)
def test_kafka_starts_from_a_snapshot_with_our_trailer(tmp_path):
    with ApacheKafka(tmp_path / "kafka") as kafka:
        create(kafka.bootstrap_servers, "followed", partitions=1)
        for _ in range(3):
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True}
            )
            for number in range(8):
                producer.produce("followed", b"%d" % number)
                assert producer.flush(60) == 0
        before = described_producers(kafka, "followed")
        kafka.terminate()
        (snapshot,) = kafka.data_directory.glob("followed-0/*.snapshot")
        log = snapshot.with_name("0" * 20 + ".log").read_bytes()
        state = ProducerState()
        for _, header in iterate_batches(log):
            state.update(header, NOW_MS)
        assert [len(entry.batches) for entry in state.entries()] == [5, 5, 5]
        theirs = snapshot.read_bytes()
        assert sorted(decode_snapshot(theirs, append_time_ms=0).producers()) == sorted(
            state.producers()
        )
        ours = encode_snapshot(state)
        assert len(ours) > len(theirs)
        snapshot.write_bytes(ours)
        kafka.restart()
        assert described_producers(kafka, "followed") == before
        assert len(before) == 3
