"""Apache Kafka's DumpLogSegments over a partition directory that the store wrote."""

from pathlib import Path

from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.log.config import LogConfig
from tests.interop.dump import complaints
from tests.storage.stores import Host, batch, from_producer, read_all

JUDGED = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}


def test_kafkas_tool_finds_no_fault_in_what_the_store_wrote(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.storage.stores.ROOT", str(tmp_path))
    host = Host(LogConfig(segment_bytes=6000, index_interval_bytes=300), disk=LocalFileSystem())
    host.boot()
    for number in range(40):
        host.append(
            batch(3, compression=number % 5, timestamp=host.now_ms + number),
            from_producer(7, 2 * number, 2),
            from_producer(9, number, transactional=True),
        )
        if number % 5 == 4:
            host.marker(9, commit=number % 2 == 0)
    host.log.delete_records(100)
    host.step()
    host.checkpoint()
    host.shut_down()
    # A second run replays, truncates and continues in the same segment.
    host.boot()
    host.append(*(batch() for _ in range(60)))
    host.checkpoint()
    assert len(read_all(host.log)) > 100
    host.shut_down()
    directory = Path(tmp_path) / "topic-0"
    files = [path for path in sorted(directory.iterdir()) if path.suffix in JUDGED]
    assert {path.suffix for path in files} == JUDGED
    assert len(files) > 12
    assert complaints(files) == []
