"""Backups and what is made of them; at random moments under load: tests/crash."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from barnabas.broker.cli.commands import produce
from barnabas.broker.cli.directory import directory_copy
from barnabas.broker.cli.directory.directory_copy import DirectoryCopy
from barnabas.storage.errors import Corrupt
from barnabas.storage.metastore.interface import IdentityMismatch
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.waiting import wait_until

SETTINGS = {"barnabas.checkpoint.interval.ms": "3600000"}
RECORDS = 1000


def values(broker: Broker, topic: str = "orders") -> list[bytes]:
    return [record.value for record in broker.records(topic).result]


def write(broker: Broker, prefix: str, count: int = RECORDS) -> list[bytes]:
    """Produce as many small batches as there may be segments."""
    shell = Shell(pytest.MonkeyPatch(), broker.bootstrap_servers)
    lines = [f"{prefix}-{number} {'x' * 430}" for number in range(count)]
    ended = shell("produce", "orders", stdin="".join(f"{line}\n" for line in lines).encode())
    assert ended.exit_code == 0
    return [line.encode() for line in lines]


@pytest.fixture
def running(tmp_path, monkeypatch):
    """A broker that serves, with several segments in its partition."""
    monkeypatch.setattr(produce, "_READ_BYTES", 16_384)
    with Broker(storage=tmp_path / "data", config=SETTINGS) as broker:
        broker.create_topic("orders", 1, {"segment.bytes": "1048576"})
        for number in range(3):
            write(broker, f"before-{number}")
        yield broker


@pytest.fixture
def backup(monkeypatch, tmp_path):
    """Run ``barnabas backup`` on the broker's directory."""
    shell = Shell(monkeypatch, "")
    return lambda target, *more: shell(
        "backup", target, "-d", tmp_path / "data", *more, server=False
    )


@pytest.fixture
def local(monkeypatch):
    """Run a command that asks no broker."""
    shell = Shell(monkeypatch, "")
    return lambda *arguments: shell(*arguments, server=False)


def checkpoint(broker: Broker) -> None:
    done: list[bool] = []
    broker.call(lambda: broker.server.logs.checkpoint(lambda: done.append(True)))
    wait_until(lambda: done)


def content(directory: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(directory): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != "barnabas-lock"
    }


def test_restored_copy_has_the_records_of_the_backup(running, backup, local, tmp_path):
    before = values(running)
    ended = backup(tmp_path / "copy")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"{tmp_path / 'copy'}: ")
    assert ended.stdout.endswith(", verified\n")
    after = write(running, "after")
    assert local("restore", tmp_path / "copy", tmp_path / "new").exit_code == 0
    with Broker(storage=tmp_path / "new") as again:
        assert values(again) == before
    assert values(running) == before + after
    # And once more: the backup is as it was.
    assert local("check", "-d", tmp_path / "copy").exit_code == 0


def test_copy_of_a_running_broker_is_not_called_a_crash(running, backup, local, tmp_path, caplog):
    caplog.set_level(logging.INFO, "barnabas.broker.server")
    copied = "copied by barnabas backup from a broker that had not stopped"
    write(running, "before")
    backup(tmp_path / "copy")
    local("restore", tmp_path / "copy", tmp_path / "new")
    for name in ("copy", "new"):
        assert local("check", "-d", tmp_path / name).lines[0] == copied
    with Broker(storage=tmp_path / "new") as again:
        assert "restored=true partitions=" in caplog.text
        assert "clean=false" not in caplog.text
        write(again, "then")
        again.crash()
    assert local("check", "-d", tmp_path / "new").lines[0].startswith("left by a crash")


def test_sealed_segments_are_links(running, backup, tmp_path):
    checkpoint(running)
    assert backup(tmp_path / "copy").exit_code == 0
    original, copy = tmp_path / "data" / "orders-0", tmp_path / "copy" / "orders-0"
    *sealed, active = sorted(path.name for path in original.glob("*.log"))
    assert sealed
    for name in sealed:
        assert os.path.samefile(original / name, copy / name)
    assert not os.path.samefile(original / active, copy / active)
    before = content(tmp_path / "copy")
    write(running, "after")
    running.crash()
    running.restart()
    assert content(tmp_path / "copy") == before, "the broker has changed the backup"


def test_segments_sealed_since_the_checkpoint_are_copies(running, backup, tmp_path):
    """A start after a crash cuts them, and writes them again."""
    # Acknowledged records may be in the journal alone: a copy has no segments created after it.
    wait_until(lambda: len(list((tmp_path / "data" / "orders-0").glob("*.log"))) > 1)
    assert backup(tmp_path / "copy").exit_code == 0
    original, copy = tmp_path / "data" / "orders-0", tmp_path / "copy" / "orders-0"
    copied = [path.name for path in copy.glob("*.log")]
    assert len(copied) > 1
    for name in copied:
        assert not os.path.samefile(original / name, copy / name)


def test_of_a_stopped_broker(tmp_path, backup, local):
    with Broker(storage=tmp_path / "data", config=SETTINGS) as broker:
        broker.create_topic("orders", 1)
        written = write(broker, "before")
    before = content(tmp_path / "data")
    assert backup(tmp_path / "copy").exit_code == 0
    assert content(tmp_path / "data") == before
    assert local("restore", tmp_path / "copy", tmp_path / "new").exit_code == 0
    with Broker(storage=tmp_path / "new") as again:
        assert values(again) == written


def test_of_a_directory_that_is_the_root_of_a_file_system(running, backup, local, tmp_path):
    before = values(running)
    for name in ("lost+found", ".snapshot", ".Trash-1000/files"):
        (tmp_path / "data" / name).mkdir(parents=True)
    assert backup(tmp_path / "copy").exit_code == 0
    assert not list((tmp_path / "copy").glob(".*")) + list((tmp_path / "copy").glob("lost*"))
    assert local("restore", tmp_path / "copy", tmp_path / "new").exit_code == 0
    with Broker(storage=tmp_path / "new") as again:
        assert values(again) == before


def test_of_a_broker_that_was_killed(running, backup, local, tmp_path):
    before = values(running)
    running.crash()
    assert backup(tmp_path / "copy").exit_code == 0
    assert local("restore", tmp_path / "copy", tmp_path / "new").exit_code == 0
    with Broker(storage=tmp_path / "new") as again:
        assert values(again) == before


def test_no_broker_starts_in_a_backup(running, backup, tmp_path):
    backup(tmp_path / "copy")
    before = content(tmp_path / "copy")
    with pytest.raises(IdentityMismatch, match="is a backup: 'barnabas restore "):
        Broker(storage=tmp_path / "copy").__enter__()
    assert content(tmp_path / "copy") == before


def test_a_backup_is_not_repaired(running, backup, local, tmp_path):
    backup(tmp_path / "copy")
    ended = local("check", "-d", tmp_path / "copy", "--repair", "--yes")
    assert ended.exit_code == 1
    assert "is a backup" in ended.stderr


def test_topics_that_come_and_go(running, backup, local, tmp_path):
    running.create_topic("gone", 3)
    backup(tmp_path / "one")
    shell = Shell(pytest.MonkeyPatch(), running.bootstrap_servers)
    assert shell("topics", "delete", "gone").exit_code == 0
    running.create_topic("new", 2)
    assert backup(tmp_path / "two").exit_code == 0
    for name, expected in (("one", "gone"), ("two", "new")):
        assert local("restore", tmp_path / name, tmp_path / f"from-{name}").exit_code == 0
        with Broker(storage=tmp_path / f"from-{name}") as again:
            topics = set(again.call(lambda each=again: list(each.server.catalogue.topics)))
        assert topics == {"orders", expected}


# ------------------------------------------------------------------------ passes and checkpoints


def test_a_pass_that_a_checkpoint_overtook_is_repeated(running, tmp_path, monkeypatch):
    overtaking = [True, True, False]
    copied = DirectoryCopy._copy_metadata

    def copy_metadata(copy):
        copied(copy)
        if copy.copied.passes and overtaking and overtaking.pop(0):
            write(running, f"meanwhile-{len(overtaking)}")
            checkpoint(running)

    monkeypatch.setattr(DirectoryCopy, "_copy_metadata", copy_metadata)
    (tmp_path / "copy").mkdir()
    found = DirectoryCopy(str(tmp_path / "data"), str(tmp_path / "copy"), in_use=True).run()
    assert found.passes >= 2
    with Broker(storage=tmp_path / "copy") as again:
        assert values(again) == values(running)


def test_a_pass_that_was_overtaken_among_the_partitions_ends_there(running, tmp_path, monkeypatch):
    """The next one has nearly all of the interval to the next checkpoint."""
    write(running, "before")
    copy_one, copy_journal = DirectoryCopy._copy_partition, DirectoryCopy._copy_backwards
    with_journal = set()

    def copy_partition(copy, directory):
        copy_one(copy, directory)
        if copy.copied.passes == 1:
            write(running, "meanwhile")
            checkpoint(running)

    def copy_backwards(copy, name):
        with_journal.add(copy.copied.passes)
        copy_journal(copy, name)

    monkeypatch.setattr(DirectoryCopy, "_copy_partition", copy_partition)
    monkeypatch.setattr(DirectoryCopy, "_copy_backwards", copy_backwards)
    (tmp_path / "copy").mkdir()
    found = DirectoryCopy(str(tmp_path / "data"), str(tmp_path / "copy"), in_use=True).run()
    assert (found.passes, with_journal) == (2, {2})
    with Broker(storage=tmp_path / "copy") as again:
        assert values(again) == values(running)


def test_backup_fails_after_the_maximum_of_passes(running, backup, tmp_path, monkeypatch):
    monkeypatch.setattr(directory_copy, "PASSES_MAX", 3)
    monkeypatch.setattr(DirectoryCopy, "_is_whole", lambda *_: False)
    ended = backup(tmp_path / "copy")
    assert ended.error.endswith("a checkpoint came in the middle of each of 3 attempts")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_segments_deleted_during_the_copy_are_left_out(running, tmp_path, monkeypatch):
    """Compaction and retention take files away while a directory is read."""
    directory = tmp_path / "data" / "orders-0"
    extra = directory / f"{10**9:020}.snapshot"
    extra.write_bytes(b"")
    copied = DirectoryCopy._copy_changed

    def copy_changed(copy, name):
        extra.unlink(missing_ok=True)
        copied(copy, name)

    monkeypatch.setattr(DirectoryCopy, "_copy_changed", copy_changed)
    (tmp_path / "copy").mkdir()
    DirectoryCopy(str(tmp_path / "data"), str(tmp_path / "copy"), in_use=True).run()
    assert not (tmp_path / "copy" / "orders-0" / extra.name).exists()


# ------------------------------------------------------------------------------------- mistakes


def test_a_damaged_directory_gives_no_backup(tmp_path, backup):
    with Broker(storage=tmp_path / "data", config=SETTINGS) as broker:
        broker.create_topic("orders", 1)
        write(broker, "before")
    path = next((tmp_path / "data" / "orders-0").glob("*.log"))
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    ended = backup(tmp_path / "copy")
    assert (
        ended.error == f"{path} at byte 0: the checksum does not match (D2): the backup is refused"
    )
    assert not (tmp_path / "copy").exists()
    assert backup(tmp_path / "copy", "--no-check").stdout.endswith(", not verified\n")


def test_missing_journal_fails_the_backup(running, backup, tmp_path):
    running.crash()
    max((tmp_path / "data").glob("barnabas-journal-*")).unlink()
    ended = backup(tmp_path / "copy")
    assert ended.error.endswith("(run 'barnabas check')")
    assert not (tmp_path / "copy").exists()
    with pytest.raises(Corrupt), Broker(storage=tmp_path / "data"):
        pass


def test_a_target_that_is_there(running, backup, local, tmp_path):
    (tmp_path / "copy").mkdir()
    assert backup(tmp_path / "copy").exit_code == 2
    assert backup(tmp_path / "one").exit_code == 0
    for target in (tmp_path / "data", tmp_path / "one"):
        ended = local("restore", tmp_path / "one", target)
        assert ended.exit_code == 2
        assert "exists already, and is not an empty directory" in ended.stderr
    assert local("restore", tmp_path / "one", tmp_path / "copy").exit_code == 0


def test_a_target_inside_of_the_source(running, backup, tmp_path):
    ended = backup(tmp_path / "data" / "copy")
    assert (ended.exit_code, "inside of the data directory" in ended.stderr) == (2, True)
    assert not list((tmp_path / "data").glob("copy*"))


def test_other_directories_are_left_out_of_the_copy(running, backup, tmp_path):
    (tmp_path / "data" / "lost+found").mkdir(mode=0)
    assert backup(tmp_path / "copy").exit_code == 0
    assert not (tmp_path / "copy" / "lost+found").exists()


def test_a_source_that_is_none(backup, local, tmp_path):
    assert backup(tmp_path / "copy").exit_code == 2
    (tmp_path / "data").mkdir()
    assert "not the data directory of a broker" in backup(tmp_path / "copy").stderr
    ended = local("restore", tmp_path / "data", tmp_path / "new")
    assert (ended.exit_code, (tmp_path / "new").exists()) == (2, False)
    assert "not a backup of 'barnabas backup'" in ended.stderr


def test_unfinished_copy_of_an_earlier_attempt_is_replaced(running, backup, tmp_path):
    (tmp_path / "copy.unfinished").mkdir()
    (tmp_path / "copy.unfinished" / "file").write_text("")
    assert backup(tmp_path / "copy").exit_code == 0
    assert not (tmp_path / "copy.unfinished").exists()
    assert not (tmp_path / "copy" / "file").exists()
    manifest = json.loads((tmp_path / "copy" / "barnabas-backup.json").read_text())
    assert manifest["source"] == str(tmp_path / "data")


def test_file_systems_without_links_or_clones(running, backup, tmp_path, monkeypatch):
    def refused(*_arguments):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    checkpoint(running)
    assert backup(tmp_path / "copy").exit_code == 0
    for path in (tmp_path / "data" / "orders-0").glob("*.log"):
        assert not os.path.samefile(path, tmp_path / "copy" / "orders-0" / path.name)
