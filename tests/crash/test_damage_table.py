"""Every file of a data directory, damaged in every way, after a kill under load.

Either all acknowledged records are served, or an error names the damaged file: at the start, or
from ``barnabas check`` for the files that a start does not read.
"""

from collections.abc import Iterator

import pytest

from barnabas.storage.errors import StorageError
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.repair.check import verify
from tests.crash.crashes import Keep
from tests.storage.stores import ROOT, Host, batch, from_producer, read_all

PAGE_BYTES = 4096
TOPICS = ("first", "second")


def killed():
    """A host that was killed under load, and what each of its logs had acknowledged."""
    host = Host(LogConfig(segment_bytes=200_000, index_interval_bytes=500), topics=TOPICS)
    host.boot()
    _load(host, 0)
    host.checkpoint()
    _load(host, 30)
    host.store.checkpoint()
    host.engine.step()
    _load(host, 60)
    served = [read_all(log) for log in host.store.logs.values()]
    host.kill()
    return host, served


def _load(host, start):
    first, second = host.store.logs.values()
    for number in range(start, start + 30):
        first.append(from_producer(7, number, value=b"%d" % number * 700))
        second.append(from_producer(9, number, transactional=True))
        second.append(batch(value=b"v" * 8000))
        host.step()
        if number % 5 == 4:
            second.append_marker(TransactionMarker(9, 0, coordinator_epoch=1, commit=False))
            host.step()


def files_of(disk, path=ROOT) -> Iterator[str]:
    """Every file below ``path``."""
    for name in disk.list_directory(path):
        below = f"{path}/{name}"
        if disk.is_directory(below):
            yield from files_of(disk, below)
        else:
            yield below


def used_bytes(data):
    """Return the length of ``data`` without the zeros at its end."""
    return len(data.rstrip(b"\0"))


def places(data):
    """Several bytes of the file: its ends, and between."""
    last = max(used_bytes(data) - 1, 0)
    return sorted({0, last // 4, last // 2, 3 * last // 4, last})


def damages(data) -> Iterator[tuple[str, bytes | None]]:
    """(what it is, the file's content then: None for no file at all)."""
    yield "missing", None
    if not data:
        return
    yield "empty", b""
    yield "half", data[: len(data) // 2]
    yield "half of what is used", data[: used_bytes(data) // 2]
    yield "only zeros", bytes(len(data))
    yield "longer", data + b"\x55" * PAGE_BYTES
    for place in places(data):
        page = place // PAGE_BYTES * PAGE_BYTES
        zeroed = data[:page] + bytes(min(PAGE_BYTES, len(data) - page)) + data[page + PAGE_BYTES :]
        yield f"page of zeros at {page}", zeroed
        flipped = bytes([data[place] ^ 0x10])
        yield f"bit flipped at {place}", data[:place] + flipped + data[place + 1 :]


def put(disk, path, content):
    if content is None:
        disk.unlink(path)
        return
    file = disk.open(path)
    file.truncate(0)
    file.pwritev([content], 0)


def outcome(host, served):
    """Return the problem or error that reports the damage, or None if all records are served."""
    try:
        host.boot()
        for log, acknowledged in zip(host.store.logs.values(), served, strict=True):
            problems = verify(log, exact=False)
            if problems:
                return problems[0]
            assert read_all(log) == acknowledged
        host.append(batch())
    except StorageError as error:
        return str(error)
    return None


HOST, SERVED = killed()
FILES = sorted(path.removeprefix(f"{ROOT}/") for path in files_of(HOST.disk))


@pytest.mark.parametrize("name", FILES)
def test_no_damage_of_a_file_goes_unnoticed(name):
    path = f"{ROOT}/{name}"
    data = HOST.disk.read_file(path)
    for what, content in damages(data):
        again = Host(HOST.specs[0].config, disk=HOST.disk.crash(Keep()), topics=TOPICS)
        again.boots = HOST.boots
        put(again.disk, path, content)
        try:
            said = outcome(again, SERVED)
        except AssertionError as error:
            raise AssertionError(f"{name}, {what}: records are missing in silence") from error
        assert said is None or said.startswith(ROOT), f"{name}, {what}: {said} names no file"


def test_the_table_has_every_kind_of_file():
    kinds = {path.rpartition("/")[2].lstrip("0123456789") for path in FILES}
    assert kinds >= {".log", ".index", ".timeindex", ".txnindex", "partition.metadata"}
    assert {name for name in FILES if name.startswith("barnabas-")} >= {
        "barnabas-checkpoint-0",
        "barnabas-checkpoint-1",
        "barnabas-commit-mark",
        "barnabas-journal-0000",
        "barnabas-journal-0001",
        "barnabas-journal-0002",
    }
