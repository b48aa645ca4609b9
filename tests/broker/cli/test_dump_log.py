import json
import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from barnabas.protocol.compression import NAMES
from barnabas.protocol.records import Record, control_batch, encode_batch
from barnabas.storage.log.checkpoint import encode_offset_checkpoint
from barnabas.storage.log.index import AbortedTransaction, TransactionIndex
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell

STEM = "00000000000000000000"
NOW_MS = 1_690_000_000_000


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A stopped broker's data directory with a bit of everything in it."""
    directory = tmp_path_factory.mktemp("written")
    patch = pytest.MonkeyPatch()
    with Broker(storage=directory / "data") as broker:
        shell = Shell(patch, broker.bootstrap_servers)
        shell("topics", "create", "orders", "-p", "2", "-X", "index.interval.bytes=100")
        for number, codec in enumerate(NAMES):
            line = json.dumps(
                {"key": "k", "value": f"{number} " * 200, "timestamp": NOW_MS + number}
            )
            shell("produce", "orders", "-p", "1", "--input", "json", "-z", codec, "-H", "h=1",
                  stdin=line.encode())  # fmt: skip
        shell("produce", "orders", "-p", "0", stdin=b"\xff\xfe\n")
    return directory / "data"


@pytest.fixture
def dump(monkeypatch):
    """Run ``barnabas dump-log``."""
    shell = Shell(monkeypatch, "")
    return lambda *arguments: shell("dump-log", *arguments, server=False)


def rows(ended):
    return [json.loads(line) for line in ended.stdout.splitlines()]


def planted(tmp_path, name, content, directory="orders-0"):
    path = tmp_path / directory
    path.mkdir(exist_ok=True)
    (path / name).write_bytes(content)
    return path / name


def damage_of(ended):
    """Return the reported damages without the file's name; the last line of stderr is left out."""
    assert ended.exit_code == 1
    *places, last = ended.stderr.splitlines()
    assert last.startswith(f"barnabas: damaged: {len(places)} place")
    return [place.partition(" at byte ")[2] for place in places]


def test_a_whole_directory(dump, written):
    ended = dump(written)
    assert (ended.exit_code, ended.stderr) == (0, "")
    titles = [line[3:] for line in ended.stdout.splitlines() if line.startswith("== ")]
    shown = {os.path.relpath(title, written) for title in titles}
    assert {
        "barnabas-checkpoint-0",
        "barnabas-commit-mark",
        "barnabas-journal-0000",
        "barnabas-metadata.sqlite-mark",
        "log-start-offset-checkpoint",
        "meta.properties",
        f"orders-1/{STEM}.log",
        f"orders-1/{STEM}.index",
        f"orders-1/{STEM}.timeindex",
        "orders-1/00000000000000000005.snapshot",
        "orders-1/leader-epoch-checkpoint",
        "orders-1/partition.metadata",
    } <= shown
    assert not any(name.endswith((".sqlite", "-wal", "-shm", "-lock")) for name in shown)


def test_quiet(dump, written):
    ended = dump("-q", written / "orders-1")
    assert ended.lines == ["6 files without damage"]
    assert dump("-q", "--format", "json", written / "orders-1").stdout == ""


def test_batches(dump, written):
    batches = rows(dump(written / "orders-1" / f"{STEM}.log", "--format", "json"))
    assert [batch["compression"] for batch in batches] == list(NAMES)
    position = 0
    for number, batch in enumerate(batches):
        assert batch["file"].endswith(f"{STEM}.log")
        expected = {
            "row": "batch",
            "base_offset": number,
            "last_offset": number,
            "count": 1,
            "position": position,
            "base_sequence": 0,
            "last_sequence": 0,
            "transactional": False,
            "control": False,
            "timestamp_type": "CreateTime",
            "max_timestamp": NOW_MS + number,
            "delete_horizon": None,
            "valid": True,
        }
        assert {key: batch[key] for key in expected} == expected
        position += batch["size"]
    assert position == (written / "orders-1" / f"{STEM}.log").stat().st_size


def test_batches_for_people(dump, written):
    lines = dump(written / "orders-1" / f"{STEM}.log").lines
    assert lines[1] == "FIRST LAST COUNT POSITION SIZE TIME CODEC PRODUCER EPOCH SEQUENCE FLAGS"
    assert len(lines) == 2 + len(NAMES)
    assert " 2023-07-22T04:26:40.000Z none " in lines[2]


def test_records(dump, written):
    found = rows(dump("-r", written / "orders-1" / f"{STEM}.log", "--format", "json"))
    records = [row for row in found if row["row"] == "record"]
    assert [record["offset"] for record in records] == [0, 1, 2, 3, 4]
    assert records[3] == {
        "file": str(written / "orders-1" / f"{STEM}.log"),
        "row": "record",
        "offset": 3,
        "timestamp": NOW_MS + 3,
        "key": "k",
        "value": "3 " * 200,
        "headers": [{"key": "h", "value": "1"}],
        "control": False,
    }


def test_records_for_people(dump, written):
    lines = dump("-r", written / "orders-1" / f"{STEM}.log").lines
    value = "0 " * 50
    assert (
        f'offset 0 2023-07-22T04:26:40.000Z key "k" value "{value}"... (400 bytes) h="1"' in lines
    )
    (line,) = (
        line for line in dump("-r", written / "orders-0" / f"{STEM}.log").lines if "key" in line
    )
    assert line.endswith("key null value 0xfffe")


def test_indexes(dump, written):
    directory = written / "orders-1"
    batches = {
        row["last_offset"]: row for row in rows(dump(directory / f"{STEM}.log", "--format", "json"))
    }
    index = rows(dump(directory / f"{STEM}.index", "--format", "json"))
    times = rows(dump(directory / f"{STEM}.timeindex", "--format", "json"))
    assert len(index) == len(times) == 4
    for row in index:
        assert row["position"] == batches[row["offset"]]["position"]
    for row in times:
        assert row["timestamp"] == batches[row["offset"]]["max_timestamp"]


def test_small_files(dump, written):
    (snapshot,) = rows(
        dump(written / "orders-1" / "00000000000000000005.snapshot", "--format", "json")
    )[-1:]
    assert (snapshot["row"], snapshot["last_offset"], snapshot["last_sequence"]) == (
        "producer",
        4,
        0,
    )
    (metadata,) = rows(dump(written / "orders-1" / "partition.metadata", "--format", "json"))
    assert len(metadata["topic_id"]) == 22
    (epoch,) = rows(dump(written / "orders-1" / "leader-epoch-checkpoint", "--format", "json"))
    assert (epoch["epoch"], epoch["start_offset"]) == (1, 0)
    (meta,) = rows(dump(written / "meta.properties", "--format", "json"))
    assert meta["node_id"] == 1
    checkpoints = [
        rows(dump(written / f"barnabas-checkpoint-{slot}", "--format", "json")) for slot in (0, 1)
    ]
    head, *partitions = max(checkpoints, key=lambda found: found[0]["generation"])
    assert head["partitions"] == len(partitions) == 2
    offsets = rows(dump(written / "log-start-offset-checkpoint", "--format", "json"))
    assert [(row["topic"], row["partition"], row["offset"]) for row in offsets] == [
        ("orders", 0, 0),
        ("orders", 1, 0),
    ]


def test_the_journal(dump, written):
    found = rows(dump("-r", written / "barnabas-journal-0000", "--format", "json"))
    groups = [row for row in found if row["row"] == "group"]
    entries = [row for row in found if row["row"] == "entry"]
    assert [group["sequence"] for group in groups] == list(
        range(groups[0]["sequence"], groups[0]["sequence"] + len(groups))
    )
    assert len(entries) == sum(group["entries"] for group in groups)
    assert sum(row["next_offset"] - row["base_offset"] for row in entries) == 6
    assert found[-1]["row"] == "rest"
    assert dump("-r", written / "barnabas-journal-0000").lines[-1].endswith("older groups, or none")


def test_how_far_journal_and_metadata_have_come(dump, written):
    path = written / "barnabas-commit-mark"
    found = rows(dump(path, "--format", "json"))
    (listed,) = [row for row in found if row["row"] == "journal files" and row["newest"]]
    files = {row["number"]: row["size"] for row in found if row["row"] == "journal file"}
    assert files == {
        int(each.name.rpartition("-")[2]): each.stat().st_size
        for each in written.glob("barnabas-journal-*")
    }
    assert listed["files"] == len(files)
    groups = rows(dump(written / "barnabas-journal-0000", "--format", "json"))
    newest = max(row["sequence"] for row in groups if row["row"] == "group")
    assert [row["group"] for row in found if row["row"] == "mark" and row["newest"]] == [newest]
    marks = rows(dump(written / "barnabas-metadata.sqlite-mark", "--format", "json"))
    with closing(sqlite3.connect(written / "barnabas-metadata.sqlite")) as connection:
        ((commits,),) = connection.execute("SELECT number FROM commits")
    assert max(row["commits"] for row in marks) == commits


def test_damaged_marks(dump, written, tmp_path):
    mark = bytearray((written / "barnabas-commit-mark").read_bytes())
    for position in (20, 16384 + 20, 32768, 36864):
        mark[position] ^= 1
    assert damage_of(dump(planted(tmp_path, "barnabas-commit-mark", bytes(mark)))) == [
        "0: neither list of files can be read",
        "32768: neither mark can be read",
    ]
    assert damage_of(dump(planted(tmp_path, "barnabas-commit-mark", bytes(mark[:100])))) == [
        "100: the file ends here, it should have 40960 bytes"
    ]
    count = b"\x01" * 8192
    assert damage_of(dump(planted(tmp_path, "barnabas-metadata.sqlite-mark", count))) == [
        "0: neither mark can be read"
    ]


def test_markers_and_transactions(dump, tmp_path):
    data = encode_batch(
        [Record(0, NOW_MS, None, b"v")], producer_id=7, producer_epoch=1, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    marker = control_batch(7, 1, commit=False, coordinator_epoch=3, timestamp=NOW_MS, base_offset=1)
    log = planted(tmp_path, f"{STEM}.log", data + marker)
    found = rows(dump("-r", log, "--format", "json"))
    assert [row["row"] for row in found] == ["batch", "record", "batch", "marker"]
    assert (found[3]["type"], found[3]["coordinator_epoch"]) == ("ABORT", 3)
    lines = dump("-r", log).lines
    assert lines[2].endswith("7 1 0 transactional")
    assert lines[-1] == "offset 1 ABORT coordinator epoch 3"
    transactions = TransactionIndex()
    transactions.append(AbortedTransaction(7, 0, 1, 2))
    index = planted(tmp_path, f"{STEM}.txnindex", transactions.encode())
    (row,) = rows(dump(index, "--format", "json"))
    assert (row["producer_id"], row["first_offset"], row["last_offset"]) == (7, 0, 1)


def test_records_of_internal_topics(dump, tmp_path):
    from barnabas.protocol.messages.offset_commit_record import (
        OFFSET_COMMIT_RECORD,
        OffsetCommitKey,
        OffsetCommitValue,
    )

    key = OFFSET_COMMIT_RECORD.encode_key(OffsetCommitKey("readers", "orders", 3))
    value = OFFSET_COMMIT_RECORD.encode_value(OffsetCommitValue(offset=12, metadata="m"))
    records = [
        Record(0, NOW_MS, key, value),
        Record(1, NOW_MS, key, None),
        Record(2, NOW_MS, b"\x7f\x7f", b""),
        Record(3, NOW_MS, b"\0\1x", b""),
    ]
    log = planted(tmp_path, f"{STEM}.log", encode_batch(records), "__consumer_offsets-0")
    commit, tombstone, unknown, unreadable = (
        row["meaning"] for row in rows(dump("-r", log, "--format", "json"))[1:]
    )
    assert commit["key"] == {"group": "readers", "topic": "orders", "partition": 3}
    assert (commit["value"]["offset"], commit["value"]["metadata"]) == (12, "m")
    assert tombstone["value"] is None
    assert unknown == {"kind": "unknown record type 32639"}
    assert unreadable["kind"].startswith("unreadable: ")
    assert '"group": "readers"' in dump("-r", log).stdout


def test_offset_checkpoints(dump, tmp_path):
    content = encode_offset_checkpoint({("a", 0): 5})
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (row,) = rows(dump(planted(tmp_path, name, content), "--format", "json"))
        assert (row["topic"], row["partition"], row["offset"]) == ("a", 0, 5)


# ------------------------------------------------------------------------------------------ damage


def damaged(written, tmp_path, name, position):
    directory = tmp_path / "orders-1"
    shutil.copytree(written / "orders-1", directory, dirs_exist_ok=True)
    content = bytearray((directory / name).read_bytes())
    content[position] ^= 0x55
    (directory / name).write_bytes(content)
    return directory / name


def test_a_flipped_bit_in_a_record(dump, written, tmp_path):
    path = damaged(written, tmp_path, f"{STEM}.log", 100)
    assert damage_of(dump(path)) == ["0: batch of offset 0: the checksum does not match"]
    found = rows(dump("-r", path, "--format", "json"))
    assert [row["valid"] for row in found if row["row"] == "batch"] == [
        False,
        True,
        True,
        True,
        True,
    ]
    assert [row["offset"] for row in found if row["row"] == "record"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (0, "an offset of at least 6124895493223874561 should follow"),
        (7, "an offset of at least 86 should follow"),
        (8, "0: the file ends after "),
        (11, "0: batch of offset 0: the checksum does not match"),
        (16, "0: no batch starts here, "),
        (17, "0: batch of offset 0: the checksum does not match"),
        (60, "0: batch of offset 0: the checksum does not match"),
    ],
)
def test_a_flipped_bit_in_a_header(dump, written, tmp_path, position, expected):
    places = damage_of(dump(damaged(written, tmp_path, f"{STEM}.log", position)))
    assert expected in places[0]


@pytest.mark.parametrize("cut", [1, 60, 61, 90])
def test_a_file_that_is_cut_off(dump, written, tmp_path, cut):
    content = (written / "orders-1" / f"{STEM}.log").read_bytes()
    whole = rows(dump(written / "orders-1" / f"{STEM}.log", "--format", "json"))
    last = whole[-1]
    path = planted(tmp_path, f"{STEM}.log", content[: last["position"] + cut])
    (problem,) = damage_of(dump(path))
    assert problem.startswith(f"{last['position']}: the file ends after {cut} ")


def test_offsets_that_go_back(dump, tmp_path):
    batch = encode_batch([Record(5, NOW_MS, None, b"v")], base_offset=5)
    path = planted(tmp_path, f"{STEM}.log", batch + batch)
    assert damage_of(dump(path)) == [
        f"{len(batch)}: batch of offset 5: an offset of at least 6 should follow"
    ]


def test_records_that_do_not_decode(dump, tmp_path):
    batch = bytearray(encode_batch([Record(0, NOW_MS, None, b"v" * 50)]))
    batch[61] = 0x7F
    from crc32c import crc32c

    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    path = planted(tmp_path, f"{STEM}.log", bytes(batch))
    assert dump(path).exit_code == 0
    (problem,) = damage_of(dump("-r", path))
    assert problem.startswith("0: batch of offset 0: record length -64 does not fit")


@pytest.mark.parametrize(
    ("name", "position", "expected"),
    [
        (f"{STEM}.index", 3, "0: the batch at byte "),
        (f"{STEM}.index", 7, "0: no batch starts at byte "),
        (f"{STEM}.index", 8, "8: the batch at byte "),
        (f"{STEM}.timeindex", 7, "0: the batch of offset 1 has timestamp 1690000000001"),
        (f"{STEM}.timeindex", 10, "0: no batch of the log holds offset 21761"),
        ("00000000000000000005.snapshot", 20, "0: the checksum does not match"),
        ("leader-epoch-checkpoint", 0, "0: expected version 0 and a count"),
        ("partition.metadata", 0, "0: partition metadata of an unknown version"),
    ],
)
def test_a_flipped_bit_elsewhere(dump, written, tmp_path, name, position, expected):
    assert damage_of(dump(damaged(written, tmp_path, name, position)))[0].startswith(expected)


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_half_an_entry(dump, written, tmp_path, suffix):
    content = (written / "orders-1" / f"{STEM}.{suffix}").read_bytes()
    path = planted(tmp_path, f"{STEM}.{suffix}", content + b"\1")
    places = damage_of(dump(path))
    assert places[-1] == f"{len(content)}: the file ends inside an entry"


def test_an_index_without_its_log(dump, written, tmp_path):
    for suffix in ("index", "timeindex"):
        content = (written / "orders-1" / f"{STEM}.{suffix}").read_bytes()
        assert dump(planted(tmp_path, f"{STEM}.{suffix}", content)).exit_code == 0


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_room_that_is_reserved_in_an_index(dump, written, tmp_path, suffix):
    content = (written / "orders-1" / f"{STEM}.{suffix}").read_bytes()
    path = planted(tmp_path, f"{STEM}.{suffix}", content + bytes(len(content) * 100))
    assert len(rows(dump(path, "--format", "json"))) == 4


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (AbortedTransaction(7, 5, 4, 9), "0: the transaction that ends at 4 is out of order"),
        (b"\0\1" + bytes(31) + b"\1", "0: version 1 is not 0"),
    ],
    ids=["order", "version"],
)
def test_a_bad_transaction_index(dump, tmp_path, content, expected):
    if isinstance(content, AbortedTransaction):
        transactions = TransactionIndex()
        transactions.append(content)
        content = transactions.encode()
    assert damage_of(dump(planted(tmp_path, f"{STEM}.txnindex", content))) == [expected]


def test_a_damaged_journal(dump, written, tmp_path):
    name = "barnabas-journal-0000"
    groups = rows(dump(written / name, "--format", "json"))
    second = groups[1]
    content = bytearray((written / name).read_bytes()[: 1 << 20])
    content[second["position"] + second["size"] - 1] ^= 1
    (tmp_path / name).write_bytes(content)
    (place,) = damage_of(dump(tmp_path / name))
    sequence, position = second["sequence"], second["position"]
    assert place == f"{position}: group {sequence} is not whole; the last one of all may be torn"


def test_a_damaged_checkpoint(dump, tmp_path):
    (tmp_path / "barnabas-checkpoint-0").write_bytes(b"BARNCKPT")
    (tmp_path / "meta.properties").write_bytes(b"\xff")
    assert damage_of(dump(tmp_path)) == ["0: 8 bytes are too few", "0: the file is not a text file"]


def test_unknown_files_are_rejected(dump, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    assert dump(tmp_path / "notes.txt").error == (
        f"{tmp_path}/notes.txt: the type of this file is unknown"
    )
    assert dump(tmp_path).error == f"{tmp_path}: the directory has no file of a log"
    for name in ("missing", f"{STEM}.log"):
        assert dump(tmp_path / name).error == f"{tmp_path}/{name}: No such file or directory"


def test_a_file_that_is_too_large_to_be_true(dump, tmp_path, monkeypatch):
    path = planted(tmp_path, "leader-epoch-checkpoint", b"")
    os.truncate(path, 1 << 40)
    assert damage_of(dump(path)) == ["0: 1099511627776 bytes are too many for such a file"]


def test_long_tables_are_printed_as_they_come(dump, tmp_path):
    batches = [
        encode_batch([Record(offset, NOW_MS, None, b"v")], base_offset=offset)
        for offset in range(250)
    ]
    lines = dump(planted(tmp_path, f"{STEM}.log", b"".join(batches))).lines
    assert len(lines) == 252
    assert lines[-1].startswith("249 249 1 ")


def test_quiet_names_every_damage(dump, written, tmp_path):
    path = damaged(written, tmp_path, f"{STEM}.log", 100)
    ended = dump("-q", path.parent)
    assert damage_of(ended)[0] == "0: batch of offset 0: the checksum does not match"
    assert ended.stdout == ""


def test_dump_log_opens_files_only_for_reading(dump, written, monkeypatch):
    opened = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, flags, *more: opened.append(flags) or real(path, flags, *more)
    )
    dump("-q", written)
    assert opened
    assert not any(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) for flags in opened)
