"""DumpLogSegments reads every file without complaint, and the check can tell a bad file."""

import shutil
from pathlib import Path

import confluent_kafka
import pytest

from tests.interop.administration import admin, create
from tests.interop.clients import Confluent, Sent
from tests.interop.dump import SUFFIXES, complaints, segment_files

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
# The records are of long ago: retention, which comes round at any time, would delete them.
SMALL_SEGMENTS = {
    "segment.bytes": str(1 << 20),
    "index.interval.bytes": "512",
    "retention.ms": "-1",
}


def fill(servers: str, topic: str) -> None:
    """Some segments of plain, compressed and idempotent batches, with growing timestamps."""
    create(servers, topic, partitions=2, configs=SMALL_SEGMENTS)
    base_ms = 1_790_000_000_000
    for number, compression in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        records = [
            Sent(b"k%d" % i, (b"%d " % i) * 40, (("h", b"v"),), base_ms + number * 1000 + i)
            for i in range(500)
        ]
        Confluent().produce(servers, topic, records, compression, 0)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for number in range(3000):
        producer.produce(topic, b"%d" % number * 200, partition=1)
        if number % 20 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def written(broker_class, tmp_path_factory) -> Path:
    """The data directory of a broker that was loaded, killed, loaded again and stopped."""
    directory = tmp_path_factory.mktemp("written")
    with broker_class(directory) as broker:
        fill(broker.bootstrap_servers, "before-the-kill")
        broker.kill()
        broker.restart()
        fill(broker.bootstrap_servers, "after-the-kill")
        client = admin(broker.bootstrap_servers)
        place = confluent_kafka.TopicPartition("after-the-kill", 0, 100)
        client.delete_records([place])[place].result(60)
        broker.terminate()
        return broker.data_directory


def test_every_file_is_flawless(written):
    files = segment_files(written)
    assert complaints(files) == []
    # Several segments were rolled, and the tool could judge each kind of file.
    assert len(list(written.glob("before-the-kill-1/*.log"))) > 1
    assert {path.suffix for path in files} >= set(SUFFIXES) - {".txnindex"}
    assert any(path.stat().st_size for path in files if path.suffix == ".snapshot")


def test_the_files_are_flawless_after_a_kill(own_broker):
    fill(own_broker.bootstrap_servers, "killed")
    own_broker.kill()
    own_broker.restart()
    own_broker.terminate()
    assert complaints(segment_files(own_broker.data_directory)) == []


@pytest.mark.parametrize(
    ("suffix", "position"),
    [(".log", 2000), (".index", 5), (".timeindex", 13), (".snapshot", 10)],
)
def test_a_planted_fault_is_found(written, tmp_path, suffix, position):
    partition = tmp_path / "before-the-kill-1"
    shutil.copytree(written / "before-the-kill-1", partition)
    victim = next(
        path
        for path in sorted(partition.iterdir())
        if path.suffix == suffix and path.stat().st_size > position + 1
    )
    content = bytearray(victim.read_bytes())
    content[position] ^= 0x55
    victim.write_bytes(content)
    assert complaints(segment_files(tmp_path)) != []


def test_a_missing_answer_is_found(tmp_path):
    partition = tmp_path / "empty-0"
    partition.mkdir()
    stranger = partition / "00000000000000000000.log"
    assert complaints([stranger]) != []
