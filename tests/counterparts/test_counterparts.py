"""Counterparts are checked before they are trusted, and missing ones say how to get them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.counterparts import jars, usage
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerDied, BrokerProcess
from tests.counterparts.class_archive import KEPT_S, remove_unused
from tests.counterparts.debian import to_install
from tests.counterparts.forked import ForkedProcess
from tests.counterparts.kept import keep
from tests.counterparts.postgresql import to_unpack
from tests.counterparts.probe import PORTS_EACH, answers_metadata, free_port, ports_of_a_block
from tests.counterparts.spark import QUICK_PYTHONPATH
from tests.counterparts.usage import cpu_time, resident_bytes


def test_every_pinned_jar_has_a_hash():
    pinned = jars.pinned_kafka_jars()
    assert len({jar.file_name for jar in pinned}) == len(pinned) >= 4
    assert all(len(jar.sha256) == 64 for jar in pinned)


def test_broker_of_a_test_is_forked_killed_and_terminated(tmp_path):
    with BarnabasProcess(tmp_path) as broker:
        assert isinstance(broker._process, ForkedProcess) == BarnabasProcess.is_forked
        with pytest.raises(subprocess.TimeoutExpired):
            broker._process.wait(0.01)
        assert (broker.is_running, broker.terminate()) == (True, 0)
        assert "started" in broker.output()
        broker.restart().kill()
        assert (broker.is_running, broker._process.poll()) == (False, -signal.SIGKILL)


def test_broker_with_an_environment_of_its_own_is_executed(tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000000")
    with BarnabasProcess(tmp_path) as broker:
        assert isinstance(broker._process, subprocess.Popen)
        assert broker.terminate() == 0


def test_directory_of_two_processes_is_kept_once(tmp_path):
    kept = tmp_path / "kept"
    for content in ("first", "second"):
        made = tmp_path / content
        made.mkdir()
        (made / "file").write_text(content)
        keep(made, kept)
    assert (kept / "file").read_text() == "first"


def test_directory_that_cannot_be_kept_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        keep(tmp_path / "missing", tmp_path / "kept")


def test_usage_of_a_process_is_read_from_the_system():
    pid = os.getpid()
    before = cpu_time(pid)
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    assert 0.05 < cpu_time(pid).total_s - before.total_s < 5
    assert 5_000_000 < resident_bytes(pid) < 5_000_000_000


def test_ended_process_keeps_its_place_in_the_usage_of_a_tree(monkeypatch):
    """PySpark's daemon ignores SIGCHLD, so the kernel forgets what its workers have used."""
    tree = {1: [2], 2: [3, 4], 3: [], 4: []}
    used_s = {1: 1.0, 2: 0.5, 3: 4.0, 4: 2.0}

    def cpu_time_of(pid):
        if pid not in used_s:
            raise FileNotFoundError
        return usage.CpuTime(used_s[pid], 0.0)

    monkeypatch.setattr(usage, "cpu_time", cpu_time_of)
    monkeypatch.setattr(usage, "children", lambda pid: tree[pid])
    of_tree = usage.TreeUsage(1)
    assert of_tree.total_s() == 7.5
    del used_s[3]
    used_s[4] = 2.5
    assert of_tree.total_s() == 8.0


def test_a_python_of_spark_takes_nothing_from_the_archives_that_spark_names_first(tmp_path):
    archive, mine = f"{tmp_path}/pyspark/python/lib/pyspark.zip", str(tmp_path)
    path = os.pathsep.join([archive, QUICK_PYTHONPATH, mine])
    answer = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.path, sep='\\n')"],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = answer.stdout.splitlines()
    assert archive not in found
    assert {*QUICK_PYTHONPATH.split(os.pathsep), mine} <= set(found)


class Stillborn(BrokerProcess):
    """A broker that prints a line and exits."""

    name = "stillborn"

    def command(self):
        return [sys.executable, "-c", "print('port in use'); raise SystemExit(3)"]


class Mute(BrokerProcess):
    """A broker that never listens."""

    start_timeout_s = 0.3

    def command(self):
        return [sys.executable, "-c", "import time; time.sleep(60)"]


def test_a_broker_that_dies_is_reported_with_its_output():
    with pytest.raises(BrokerDied, match="stillborn exited 3: port in use"), Stillborn():
        pass


def test_a_broker_that_does_not_answer_is_killed():
    mute = Mute()
    with pytest.raises(BrokerDied, match="did not answer"), mute:
        pass
    with pytest.raises(ProcessLookupError):
        os.kill(mute.pid, 0)


def test_no_broker_responds_on_a_free_port():
    assert not answers_metadata("127.0.0.1", free_port())


def test_two_processes_have_no_port_in_common():
    mine, theirs = ports_of_a_block(), ports_of_a_block()
    ports = {next(mine) for _ in range(2 * PORTS_EACH)}
    assert len(ports) == PORTS_EACH - 1
    assert ports.isdisjoint(next(theirs) for _ in range(2 * PORTS_EACH))


def test_packages_that_apt_would_install_are_read_with_versions():
    said = """Reading package lists...
The following NEW packages will be installed:
  chromium-common libogg0
Inst libogg0 (1.3.5-3 Debian:12.14/oldstable [amd64])
Inst libnss3 [2:3.87.1-1] (2:3.87.1-1+deb12u2 Debian-Security:12/oldstable-security [amd64]) []
Inst xdg-utils (1.1.3-4.1 Debian:12.14/oldstable [all])
Conf libogg0 (1.3.5-3 Debian:12.14/oldstable [amd64])
"""
    found = ["libogg0=1.3.5-3", "libnss3=2:3.87.1-1+deb12u2", "xdg-utils=1.1.3-4.1"]
    assert to_install(said) == found


def test_of_postgresql_its_programs_and_the_libraries_that_are_missing_are_unpacked():
    needed = ["libc6=2", "libxml2=2.9", "libllvm14=14", "libipc-run-perl=1", "perl=5", "ssl-cert=1"]
    programs = ["postgresql-15=15.20", "postgresql-client-15=15.20"]
    others = ["postgresql-common=248", "postgresql=15+248"]
    there = {"libc6", "postgresql-15", "perl"}
    assert to_unpack([*needed, *programs, *others], there) == ["libxml2=2.9", *programs]


def test_archives_of_classes_stay_while_a_checkout_uses_them(tmp_path):
    used, unused = (tmp_path / f"spark-{name}.jsa" for name in ("used", "unused"))
    now = time.time()
    for path, age_s in ((used, KEPT_S / 2), (unused, 2 * KEPT_S)):
        path.touch()
        os.utime(path, (now - age_s, now - age_s))
    remove_unused(tmp_path)
    assert list(tmp_path.iterdir()) == [used]
