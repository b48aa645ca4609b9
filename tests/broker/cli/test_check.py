import json
import os
import re
import shutil
from pathlib import Path

import pytest

from barnabas.broker.cli.commands import produce
from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.storage.errors import Corrupt
from barnabas.storage.metastore.commit_count import CommitCount
from barnabas.storage.metastore.interface import MetaStoreError
from barnabas.storage.repair.check import verify
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.waiting import wait_until

STEM = "00000000000000000000"


def fill(shell, topic, count):
    lines = "".join(f"key:{number} {'x' * 80}\n" for number in range(count))
    assert shell("produce", topic, "-K", ":", stdin=lines.encode()).exit_code == 0


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The data directory of a broker that was stopped, with several segments in a partition."""
    return written(tmp_path_factory.mktemp("stopped"), crash=False)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """The same of one that was killed."""
    return written(tmp_path_factory.mktemp("crashed"), crash=True)


def written(directory, *, crash):
    patch = pytest.MonkeyPatch()
    patch.setattr(produce, "_READ_BYTES", 32_768)
    with Broker(storage=directory / "data") as broker:
        shell = Shell(patch, broker.bootstrap_servers)
        shell("topics", "create", "orders", "-p", "2", "-X", "segment.bytes=1048576")
        shell("topics", "create", "gone", "prices")
        shell("produce", "gone", stdin=b"x\n")
        fill(shell, "orders", 15_000)
        shell("topics", "delete", "gone")
        shell("topics", "alter", "orders", "-X", "index.interval.bytes=100")
        fill(shell, "orders", 1000)
        if crash:
            broker.crash()
            shutil.copytree(directory / "data", directory / "killed")
            broker.restart()
    patch.undo()
    return directory / ("killed" if crash else "data")


@pytest.fixture
def check(monkeypatch):
    """Run ``barnabas check``."""
    shell = Shell(monkeypatch, "")
    return lambda *arguments, command="check": shell(command, *arguments, server=False)


def content(directory):
    return {
        path.relative_to(directory): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("how", ["stopped", "crashed"])
def test_a_good_directory(check, request, how):
    directory = request.getfixturevalue(how)
    before = content(directory)
    lines = check("-d", directory).lines
    assert lines[0].startswith("left by a crash" if how == "crashed" else "left after a clean stop")
    assert lines[3] == "TOPIC PARTITION START END SEGMENTS BYTES PROBLEMS"
    rows = [line.split() for line in lines[4:-2]]
    assert [row[:3] for row in rows] == [
        ["orders", "0", "0"],
        ["orders", "1", "0"],
        ["prices", "0", "0"],
    ]
    assert sum(int(row[3]) for row in rows) == 16_000
    assert max(int(row[4]) for row in rows) > 1
    assert {row[6] for row in rows} == {"0"}
    size_bytes = sum(int(row[5]) for row in rows)
    assert lines[-2:] == ["", f"healthy: 3 partitions, {size_bytes:,} bytes, all verified"]
    assert content(directory) == before


def test_internal_partitions_share_a_row(check, tmp_path):
    with Broker(storage=tmp_path, config={"offsets.topic.num.partitions": "120"}) as broker:
        broker.create_topic("orders", 101)
        with WireClient(broker.address) as client:
            client.ask(FIND_COORDINATOR, FindCoordinatorRequest("group"), 2)
            wait_until(lambda: broker.call(lambda: len(broker.server.logs.logs)) == 221)
    ended = check("-d", tmp_path)
    table = ended.stdout.splitlines()[3:-2]
    assert len(table) == 1 + 101 + 1
    assert table[-1].split() == ["__consumer_offsets", "(120)", "-", "-", "-", "120", "0", "0"]
    # Columns stay in line, however many rows there are.
    assert {len(line) for line in table} == {len(table[0])}


def test_json(check, crashed):
    found = check("-d", crashed, "--format", "json").json
    assert (found["verdict"], found["stopped"]) == ("healthy", "crash")
    assert found["batches_replayed"] > 1
    assert found["journal_groups"] > 1
    first = found["partitions"][0]
    assert (first["topic"], first["partition"], first["problems"]) == ("orders", 0, [])


def test_nothing_is_left_behind(check, stopped, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert check("-d", stopped).exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_broker_starts_from_what_was_checked(check, crashed, tmp_path):
    directory = tmp_path / "data"
    shutil.copytree(crashed, directory)
    assert check("-d", directory).exit_code == 0
    with Broker(storage=directory) as broker:
        for log in broker.server.logs.logs.values():
            assert verify(log, exact=False) == []
    assert check("-d", directory).lines[0] == "left after a clean stop"


def test_settings_are_those_of_the_configuration(check, stopped, tmp_path):
    (tmp_path / "server.properties").write_text(f"log.dirs={stopped}\n")
    assert check(tmp_path / "server.properties").exit_code == 0
    assert check(f"-Xlog.dirs={stopped}").exit_code == 0


# ------------------------------------------------------------------------------------------ damage


@pytest.fixture
def copy(stopped, tmp_path):
    directory = tmp_path / "data"
    shutil.copytree(stopped, directory)
    return directory


@pytest.fixture
def killed_copy(crashed, tmp_path):
    directory = tmp_path / "data"
    shutil.copytree(crashed, directory)
    return directory


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


def sealed_segment(directory):
    return next(
        path
        for path in sorted(directory.glob("orders-*/*.log"))
        if len(list(path.parent.glob("*.log"))) > 1
    )


def test_damage_in_a_sealed_segment(check, copy):
    path = sealed_segment(copy)
    flip(path, 5000)
    ended = check("-d", copy)
    assert ended.exit_code == 1
    place, last = ended.stderr.splitlines()
    assert place == f"barnabas: {path} at byte 0: the checksum does not match (D2)"
    assert last == f"barnabas: {copy}: 1 problem"
    verdict = f"damaged: 1 problem, in 1 of 3 partitions: {path.parent.name}"
    assert ended.stdout.splitlines()[-1] == verdict
    assert "left after a clean stop" in ended.stdout


@pytest.mark.parametrize(
    ("suffix", "size", "expected"),
    [
        (".index", 4, "wrong entry in its offset index"),
        (".timeindex", 8, "wrong entry in its time"),
    ],
)
def test_damage_in_an_index(check, copy, suffix, size, expected):
    path = sealed_segment(copy).with_suffix(suffix)
    data = path.read_bytes()
    # The first entry's offset or timestamp: one less still looks like an index.
    path.write_bytes((int.from_bytes(data[:size], "big") - 1).to_bytes(size, "big") + data[size:])
    ended = check("-d", copy)
    assert ended.exit_code == 1
    assert expected in ended.stderr


def test_damage_that_keeps_a_broker_from_starting(check, copy):
    path = max(copy.glob("orders-*/*.log"))
    with path.open("r+b") as file:
        file.truncate(100)
    ended = check("-d", copy)
    assert ended.exit_code == 1
    first = ended.stderr.splitlines()[0]
    assert first.startswith(f"barnabas: {path} is corrupt at byte 100: the file should hold ")
    assert first.endswith(" (no broker starts from this)")
    verdict = ended.stdout.splitlines()[-1]
    assert verdict.startswith("refused: ")
    assert verdict.endswith(f": {path.parent.name} (no broker starts from this)")
    with pytest.raises(Corrupt, match="the file should hold"), Broker(storage=copy):
        pass


def test_damage_in_the_journal(check, killed_copy):
    path = killed_copy / "barnabas-journal-0000"
    dumped = check("--format", "json", path, command="dump-log").stdout
    groups = [row for row in map(json.loads, dumped.splitlines()) if row["row"] == "group"]
    middle = groups[len(groups) // 2]
    flip(path, middle["position"] + middle["size"] - 1)
    error = check("-d", killed_copy).stderr
    assert error.startswith(f"barnabas: {path} is corrupt at byte {middle['position']}: group ")


@pytest.mark.parametrize("left", [None, 0.0, 0.5])
def test_a_journal_that_has_lost_its_end(check, killed_copy, left):
    path = max(killed_copy.glob("barnabas-journal-*"))
    size = path.stat().st_size
    if left is None:
        path.unlink()
        expected = f"{path} is corrupt at byte 0: the file is missing"
    else:
        os.truncate(path, int(size * left))
        expected = f"{path} is corrupt at byte {int(size * left)}: the file ends here"
    ended = check("-d", killed_copy)
    assert ended.exit_code == 1
    assert ended.stderr.startswith(f"barnabas: {expected}")
    assert re.search(r"journal end before group \d+: nothing that is needed is ", ended.stdout)


def test_a_journal_file_as_it_was_before(check, killed_copy):
    """All commit groups are lost, and the size of the file is right."""
    for path in killed_copy.glob("barnabas-journal-*"):
        path.write_bytes(bytes(path.stat().st_size))
    assert "was durable" in check("-d", killed_copy).stderr


def test_metadata_that_has_lost_commits(check, killed_copy):
    count = CommitCount(str(killed_copy / "barnabas-metadata.sqlite"))
    count.begin()
    count.advance(count.number + 1)
    count.close()
    said = rf"{killed_copy}/barnabas-metadata.sqlite: \d+ of {count.number} commits are"
    assert re.search(said, check("-d", killed_copy).error)


def test_damaged_metadata(check, copy):
    for path in copy.glob("barnabas-metadata.sqlite*"):
        path.write_bytes(b"damaged " * 1024)
    error = check("-d", copy).error
    assert f"{copy}/barnabas-metadata.sqlite" in error


def test_metadata_with_a_flipped_bit(check, copy):
    """The structure of the file is intact; `check --repair` accepts its content if confirmed."""
    path = copy / "barnabas-metadata.sqlite"
    path.write_bytes(path.read_bytes().replace(b"segment.bytes1048576", b"segment.bytes1048577"))
    before = content(copy)
    said = "the content of topic_configs is not what was committed"
    with pytest.raises(MetaStoreError, match=said), Broker(storage=copy):
        pass
    ended = check("-d", copy, "--repair", "--dry-run")
    assert said in ended.stderr
    assert "--repair would take the metadata as they are now, with what is in to" in ended.stdout
    assert content(copy) == before
    assert check("-d", copy, "--repair", "--yes").exit_code == 0
    assert check("-d", copy).exit_code == 0
    with Broker(storage=copy) as broker:
        topic = broker.server.catalogue.topics["orders"]
        assert topic.partitions[0].log.config.segment_bytes == 1048577


def test_metadata_that_is_missing(check, copy):
    for path in copy.glob("barnabas-metadata.sqlite*"):
        path.unlink()
    assert "no topic owns it; is the metadata file missing" in check("-d", copy).error


def test_a_stray_directory(check, copy):
    (copy / "stray-0").mkdir()
    (copy / "stray-0" / f"{STEM}.log").write_bytes(b"")
    assert f"{copy}/stray-0: no topic owns it" in check("-d", copy).error


# ------------------------------------------------------------------------------------------ repair


@pytest.fixture
def damaged_copy(copy):
    path = sealed_segment(copy)
    flip(path, 5000)
    return copy


def test_dry_run_names_the_records_a_repair_would_cut(check, damaged_copy):
    before = content(damaged_copy)
    for more in ((), ("--repair", "--dry-run")):
        ended = check("-d", damaged_copy, *more)
        assert ended.exit_code == 1
        (line,) = [line for line in ended.stdout.splitlines() if line.startswith("--repair")]
        assert re.fullmatch(
            r"--repair would cut out orders-[01]: offsets 0 to \d+, at most \d+ records, "
            rf"[\d,]+ bytes of {STEM}.log from byte 0 on: the checksum of the batch is wrong",
            line,
        )
    ended = check("-d", damaged_copy, "--repair")
    assert ended.exit_code == 1
    assert (
        ended.stderr.splitlines()[-1]
        == "barnabas: confirmation takes a terminal, or the option --yes; no change was made"
    )
    assert content(damaged_copy) == before


def test_a_repair(check, damaged_copy, monkeypatch):
    path = sealed_segment(damaged_copy)
    index = int(path.parent.name[-1])
    before = path.read_bytes()
    plan = check("-d", damaged_copy, "--format", "json")
    (damaged,) = json.loads(plan.stdout)["partitions"][index]["damaged"]
    with Broker(storage=damaged_copy) as broker:
        end = broker.call(
            lambda: broker.server.catalogue.topics["orders"].partitions[index].log.next_offset
        )
    ended = check("-d", damaged_copy, "--repair", "--yes")
    assert ended.exit_code == 0
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("cut out")]
    kept = Path(line.rpartition(" ")[2])
    assert kept.parent == path.parent
    assert kept.read_bytes() == before[damaged["position"] : damaged["end_position"]]
    again = check("-d", damaged_copy)
    assert (again.exit_code, again.stderr) == (0, "")
    with Broker(storage=damaged_copy) as broker:
        shell = Shell(monkeypatch, broker.bootstrap_servers)
        ended = shell("consume", "orders", "-p", index, "-o", "beginning", "-e", "-f", "%o\n")
        offsets = [int(line) for line in ended.lines]
    assert offsets == list(range(damaged["end_offset"], end))


def spoil(path, how):
    if how == "missing":
        path.unlink()
    elif how == "short":
        os.truncate(path, path.stat().st_size // 2)
    else:
        flip(path, 5000)


def offsets_of(monkeypatch, directory, index):
    """Every offset of a partition of "orders", as a consumer sees it, and where it ends."""
    with Broker(storage=directory) as broker:
        end = broker.call(
            lambda: broker.server.catalogue.topics["orders"].partitions[index].log.next_offset
        )
        shell = Shell(monkeypatch, broker.bootstrap_servers)
        ended = shell("consume", "orders", "-p", index, "-o", "beginning", "-e", "-f", "%o\n")
        return [int(line) for line in ended.lines], end


@pytest.mark.parametrize("how", ["missing", "short", "flipped"])
@pytest.mark.parametrize("which", ["sealed", "active"])
def test_repair_lets_a_refused_start_succeed(check, crashed, tmp_path, monkeypatch, how, which):
    """The command lists the losses before a repair; a broker then starts with the other records."""
    directory = tmp_path / "data"
    shutil.copytree(crashed, directory)
    with Broker(storage=directory) as broker:
        pass  # So that the checkpoint counts on the segments, not on the journal.
    with Broker(storage=directory) as broker:
        broker.crash()
    sealed = sealed_segment(directory)
    index = int(sealed.parent.name[-1])
    path = sealed if which == "sealed" else max(sealed.parent.glob("*.log"))
    spoil(path, how)
    before = content(directory)
    is_refused = (which, how) != ("sealed", "flipped")
    if is_refused:
        copy = tmp_path / "copy"
        shutil.copytree(directory, copy)
        with pytest.raises(Corrupt, match=path.name), Broker(storage=copy):
            pass
    plan = check("-d", directory, "--repair", "--dry-run", "--format", "json")
    assert plan.exit_code == 1
    assert ("no broker starts from this" in plan.stderr) == is_refused
    damaged = json.loads(plan.stdout)["partitions"][index]["damaged"]
    assert content(directory) == before
    assert check("-d", directory, "--repair", "--yes").exit_code == 0
    again = check("-d", directory)
    assert (again.exit_code, again.stderr) == (0, "")
    offsets, end = offsets_of(monkeypatch, directory, index)
    lost = {offset for each in damaged for offset in range(each["base_offset"], each["end_offset"])}
    assert lost
    assert offsets == [offset for offset in range(end) if offset not in lost]


def test_a_lost_end_of_the_journal_is_let_go(check, killed_copy, monkeypatch):
    """The repair removes exactly the records it named; later records reuse their offsets."""
    (killed_copy / "barnabas-journal-0000").unlink()
    before = content(killed_copy)
    ended = check("-d", killed_copy, "--repair")
    assert "confirmation takes a terminal, or the option --yes; no change was made" in ended.stderr
    plan = check("-d", killed_copy, "--repair", "--dry-run", "--format", "json")
    assert content(killed_copy) == before
    found = json.loads(plan.stdout)
    assert found["journal_loss"]["last_group"] > found["journal_loss"]["first_group"]
    text = check("-d", killed_copy).stdout
    assert re.search(r"journal end before group \d+: \d+ groups that had been ackn", text)
    assert re.search(r"--repair would lose orders-[01]: offsets 0 to \d+, at most [\d,]+ r", text)
    lost = {each["partition"]: each for each in found["journal_loss"]["lost"]}
    assert check("-d", killed_copy, "--repair", "--yes").exit_code == 0
    again = check("-d", killed_copy)
    assert (again.exit_code, again.stderr) == (0, "")
    total = 0
    for partition in found["partitions"]:
        if partition["topic"] == "orders":
            index = partition["partition"]
            offsets, end = offsets_of(monkeypatch, killed_copy, index)
            assert end == partition["end_offset"]
            assert offsets == list(range(end))
            if index in lost:
                assert end == lost[index]["base_offset"]
            total += lost[index]["end_offset"] if index in lost else end
    assert total == 16_000, "what the files of the segments had is counted"
    with Broker(storage=killed_copy) as broker:
        broker.crash()
        broker.restart()
        shell = Shell(monkeypatch, broker.bootstrap_servers)
        fill(shell, "orders", 100)
    assert check("-d", killed_copy).exit_code == 0


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("how", ["missing", "short"])
def test_an_index_is_made_again(check, killed_copy, monkeypatch, suffix, how):
    sealed = sealed_segment(killed_copy)
    path = sealed.with_suffix(suffix)
    if suffix == ".txnindex" and not path.exists():
        path.write_bytes(b"\x01" * 34)
    spoil(path, how)
    offsets, end = offsets_of(monkeypatch, killed_copy, int(sealed.parent.name[-1]))
    assert offsets == list(range(end))
    assert check("-d", killed_copy).exit_code == 0


def test_progress(check, copy):
    with Broker(storage=copy) as broker:
        wait_until(lambda: broker.server.scrubber.counts.segments)
        ended = check("-d", copy, "--progress")
        assert ended.exit_code == 0, "of a directory in use it says only that"
        assert ended.stdout == ""
    ended = check("-d", copy, "--progress")
    assert ended.exit_code == 0
    first, *lines = ended.stderr.splitlines()
    assert re.match(r"verified by the broker as of 20\d\d-.*: \d+ of \d+ sealed segment", first)
    assert lines[0].startswith("0 of ")
    assert " bytes: " in lines[0]


# ------------------------------------------------------------------------- what cannot be checked


def test_no_directory(check, tmp_path):
    ended = check("-d", tmp_path / "missing")
    assert (ended.exit_code, ended.stderr) == (
        2,
        f"barnabas: {tmp_path}/missing: not a directory\n",
    )
    ended = check("-d", tmp_path)
    assert ended.stderr == (
        f"barnabas: {tmp_path}: neither Barnabas nor an Apache Kafka that was stopped cleanly "
        "left data in it\n"
    )
    assert ended.exit_code == 2


def test_no_room_for_the_scratch_copy(check, copy, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "/tmp/x")

    monkeypatch.setattr(os, "symlink", full)
    assert check("-d", copy).error == "/tmp/x: No space left on device"


def test_a_directory_that_cannot_be_written(check, copy):
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert check("-d", copy).exit_code == 0
    finally:
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o755)
    assert os.access(copy, os.W_OK)
