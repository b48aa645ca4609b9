"""Thousands of segments share few descriptors, and nothing is closed under a reader."""

import os
from dataclasses import replace

import pytest

from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.segment_read import read_waiting
from barnabas.storage.repair.check import verify
from tests.storage.stores import SETTINGS, Host, batch, read_all


class Holder:
    def __init__(self):
        self.holds = True

    def release_file(self):
        self.holds = False


def test_the_one_that_was_opened_first_lets_go():
    files = OpenFiles(2)
    first, second, third = holders = [Holder() for _ in range(3)]
    files.opened(first)
    files.opened(second)
    files.opened(first)
    files.opened(third)
    assert [holder.holds for holder in holders] == [True, False, True]
    files.closed(third)
    assert len(files) == 1


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_many_segments_share_few_descriptors_and_stay_readable(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.storage.stores.ROOT", str(tmp_path))
    before = descriptors()
    host = Host(
        LogConfig(segment_bytes=200, index_interval_bytes=50),
        disk=LocalFileSystem(),
        settings=replace(SETTINGS, open_files_max=5),
    )
    host.boot()
    host.append(*(batch() for _ in range(200)))
    log = host.log
    assert len(log.segments) == 100
    plan = log.plan_read(0, 1000)
    for _ in range(2):
        assert len(read_all(log)) == 200
    assert descriptors() <= before + 5 + 6
    assert sum(segment._index is not None for segment in log.segments) <= 6
    assert len(plan.load(read_waiting).data) > 0, "a reader's file stays open"
    assert verify(log) == []
    log.delete_records(150)
    host.step()
    host.checkpoint()
    host.step()
    del plan
    host.shut_down()
    assert descriptors() == before
    host.boot()
    assert len(read_all(host.log)) == 50
    assert descriptors() <= before + 5 + 6
    host.shut_down()
    assert descriptors() == before


def test_deleted_partition_has_no_open_files(tmp_path, monkeypatch):
    """A file that is unlinked and held open still takes its room on the disk."""
    monkeypatch.setattr("tests.storage.stores.ROOT", str(tmp_path))
    host = Host(LogConfig(segment_bytes=200), disk=LocalFileSystem(), topics=("topic", "other"))
    host.boot()
    host.store.get(2).append(batch())
    host.step()
    before = descriptors()
    host.append(*(batch() for _ in range(20)))
    host.log.delete_records(6)
    host.step()
    log = host.log
    assert len(read_all(log)) == 14
    assert descriptors() > before
    host.store.delete(1)
    host.step()
    assert descriptors() == before
    with pytest.raises(FileNotFoundError):
        read_all(log)
    host.checkpoint()
    host.shut_down()
