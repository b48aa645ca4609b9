"""Counterparts are checked before they are trusted, and missing ones say how to get them."""

import hashlib
import os
import subprocess
import sys
import time

import pytest

from tests.counterparts import jars, java
from tests.counterparts.broker_process import BrokerDied, BrokerProcess
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.probe import answers_metadata, free_port
from tests.counterparts.usage import cpu_time, resident_bytes

JAR = jars.PinnedJar("group", "artifact", "1.0", hashlib.sha256(b"right").hexdigest())


@pytest.fixture
def one_pinned_jar(monkeypatch, tmp_path):
    monkeypatch.setattr(jars, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(jars, "pinned_jars", lambda family: [JAR])


def fetch_instead(monkeypatch, content):
    def fetch(missing, destination):
        if content is not None:
            (destination / JAR.file_name).write_bytes(content)

    monkeypatch.setattr(jars, "_fetch", fetch)


def test_a_jar_with_the_pinned_hash_is_taken(one_pinned_jar, monkeypatch, tmp_path):
    fetch_instead(monkeypatch, b"right")
    directory = jars._fetched.__wrapped__("family")
    assert (directory / "artifact-1.0.jar").read_bytes() == b"right"
    fetch_instead(monkeypatch, b"not needed again")
    assert jars._fetched.__wrapped__("family") == directory


def test_a_damaged_jar_in_the_cache_is_fetched_again(one_pinned_jar, monkeypatch, tmp_path):
    (tmp_path / "family_jars").mkdir()
    (tmp_path / "family_jars" / JAR.file_name).write_bytes(b"damaged")
    fetch_instead(monkeypatch, b"right")
    directory = jars._fetched.__wrapped__("family")
    assert (directory / "artifact-1.0.jar").read_bytes() == b"right"


@pytest.mark.parametrize(
    ("content", "says"), [(b"wrong", "not the pinned file"), (None, "could not be fetched")]
)
def test_any_other_file_is_refused(one_pinned_jar, monkeypatch, content, says):
    fetch_instead(monkeypatch, content)
    with pytest.raises(MissingCounterpart, match=says):
        jars._fetched.__wrapped__("family")


def test_every_pinned_jar_has_a_hash():
    for family in ("kafka", "spark_kafka"):
        pinned = jars.pinned_jars(family)
        assert len({jar.file_name for jar in pinned}) == len(pinned) >= 4
        assert all(len(jar.sha256) == 64 for jar in pinned)


def test_the_wrapped_java_drops_the_option_it_cannot_take(monkeypatch, tmp_path):
    monkeypatch.setattr(java, "cache_directory", lambda: tmp_path)
    real = tmp_path / "real java"
    real.write_text('#!/bin/sh\nfor argument do echo "<$argument>"; done\n')
    real.chmod(0o755)
    home = java._wrapped_home(real)
    command = [home / "bin" / "java", "-Xmx1g", java.ABSENT_MODULE_OPTION, "a b", "Main"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.split("\n")[:-1] == ["<-Xmx1g>", "<a b>", "<Main>"]


def test_what_a_process_uses_is_read_from_the_system():
    pid = os.getpid()
    before = cpu_time(pid)
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    assert 0.05 < cpu_time(pid).total_s - before.total_s < 5
    assert 5_000_000 < resident_bytes(pid) < 5_000_000_000


class Stillborn(BrokerProcess):
    """A broker that says something and exits."""

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


def test_nobody_answers_on_a_free_port():
    assert not answers_metadata("127.0.0.1", free_port())
