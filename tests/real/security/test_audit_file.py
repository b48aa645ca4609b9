"""The file of the audit log, which a thread of ``logging`` writes."""

import logging

from barnabas.broker.runtime import audit_file
from barnabas.broker.runtime.audit_file import AuditOutput
from barnabas.storage.runtime.threads import new_event
from tests.broker.security.test_audit import opened
from tests.waiting import WAIT_S, wait_until


def test_lines_before_open_and_after_close_are_dropped(tmp_path):
    path, output = tmp_path / "audit.log", AuditOutput()
    output.close()
    output.write("before")
    output.open(str(path))
    output.write("one")
    output.close()
    output.write("behind")
    assert path.read_text() == "one\n"


def test_audit_file_is_private_and_created_again_after_move(tmp_path):
    path = tmp_path / "audit.log"
    output = opened(str(path))
    output.write("one")
    wait_until(lambda: path.read_text() == "one\n")
    assert path.stat().st_mode & 0o777 == 0o600
    path.rename(tmp_path / "audit.log.1")
    output.write("two")
    wait_until(lambda: path.exists() and path.read_text() == "two\n")
    assert path.stat().st_mode & 0o777 == 0o600
    output.close()


def test_audit_file_recovers_after_missing_directory(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "audit" / "log"
    path.parent.mkdir()
    output = opened(str(path))
    output.write("one")
    wait_until(lambda: path.read_text() == "one\n")
    path.parent.rename(tmp_path / "moved")
    output.write("lost")
    wait_until(lambda: "audit log cannot be written" in caplog.text)
    path.parent.mkdir()
    output.write("two")
    wait_until(lambda: path.exists() and path.read_text() == "two\n")
    output.close()
    assert "audit log is written again" in caplog.text


def test_a_disk_that_cannot_be_written_is_said_once(tmp_path, caplog):
    output = opened("/dev/full")
    for _ in range(5):
        output.write("x")
    output.close()
    said = [each.message for each in caplog.records if "audit log cannot" in each.message]
    assert said == [
        "audit log cannot be written path=/dev/full: [Errno 28] No space left on device"
    ]


def test_a_disk_that_is_slow_costs_lines_and_no_time(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(audit_file, "WAITING_MAX", 3)
    disk, written = new_event(), []

    def emit(_file, record):
        assert disk.wait(WAIT_S)
        written.append(record)

    monkeypatch.setattr(audit_file._File, "emit", emit)
    output = opened(str(tmp_path / "log"))
    for _ in range(50):
        output.write("x")
    assert not written, "nobody has waited for the disk"
    disk.set()
    wait_until(lambda: len(written) >= 3)
    output.write("x")
    output.close()
    kept = len(written) - 1
    assert kept in {3, 4}, "what waits, and what was being written"
    assert f"audit lines left out, the disk is slow count={50 - kept}" in caplog.text
