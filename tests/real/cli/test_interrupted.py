"""Commands that are interrupted, or whose output is no longer read."""

from __future__ import annotations

import signal
import subprocess

from barnabas.broker.cli.records import group_member
from barnabas.protocol.messages.sync_group import SYNC_GROUP
from tests.broker.cli.test_bench import topic
from tests.broker.cli.test_consume import ten
from tests.broker.cli.test_dump_log import written
from tests.broker.cli.test_groups import EVERYTHING, described, numbers
from tests.real.cli.command import command, environment
from tests.waiting import wait_until

__all__ = ["numbers", "ten", "topic", "written"]


def test_ctrl_c_prints_what_was_measured(shell, shared_broker, topic, tmp_path):
    process = subprocess.Popen(
        command("bench", "produce", topic, "-s", "600", "-b", shell.address),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    partition = shared_broker.call(lambda: shared_broker.server.catalogue.partition(topic, 0))
    wait_until(lambda: shared_broker.call(lambda: partition.log.high_watermark) > 1000)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "")
    assert stdout.startswith("records ")


def consuming(shell, tmp_path, *arguments):
    return subprocess.Popen(
        command("consume", *arguments, "-b", shell.address),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_consume_follows_until_ctrl_c(shell, tmp_path, ten):
    with consuming(shell, tmp_path, ten, "-p", "0", "-o", "-1") as process:
        assert process.stdout.readline() == "0/9\n"
        shell("produce", ten, "-p", "0", stdin=b"new\n")
        assert process.stdout.readline() == "new\n"
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout, stderr) == (130, "", "")


def test_consume_ends_after_its_pipe_is_closed(shell, tmp_path, ten):
    with consuming(shell, tmp_path, ten, "-p", "0", "-o", "beginning") as process:
        assert process.stdout.readline() == "0/0\n"
        process.stdout.close()
        shell("produce", ten, "-p", "0", stdin=b"new\n")
        assert process.stderr.read() == ""
        assert process.wait(timeout=120) == 0


def test_dump_log_ends_after_its_pipe_is_closed(written, tmp_path):
    with subprocess.Popen(
        command("dump-log", "-r", written),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline().startswith("== ")
        process.stdout.close()
        process.stderr.read()
        assert process.wait(timeout=120) in {0, 1}


def test_lines_are_written_as_they_come(shell, tmp_path):
    shell("topics", "create", "live")
    with subprocess.Popen(
        command("produce", "live", "-b", shell.address),
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdin.write(b"first\n")
        process.stdin.flush()
        ended = shell("consume", "live", "-o", "beginning", "-n", "1")
        assert ended.stdout == "first\n"
        stdout, stderr = process.communicate(b"second\n", timeout=120)
    assert (stdout, stderr) == (b"live-0: 2 records, offsets 0 to 1\n", b"")


def popen(shell, tmp_path, topic):
    return subprocess.Popen(
        command("consume", topic, "-g", topic, "-o", "beginning", "-b", shell.address),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_commits_and_leaves(shell, numbers, tmp_path):
    with popen(shell, tmp_path, numbers) as process:
        lines = [process.stdout.readline().strip() for _ in range(30)]
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout, stderr) == (130, "", "")
    assert sorted(lines) == EVERYTHING
    found = described(shell, numbers)
    assert (found["lag"], found["members"]) == (0, [])


def test_ctrl_c_while_the_group_comes_together(own_broker, own_shell, tmp_path):
    """A member without its first assignment leaves, too: the next one need not wait for it."""
    own_shell("topics", "create", "t")
    own_shell("produce", "t", stdin=b"a\n")
    with own_broker.intercept(SYNC_GROUP, delay_ms=60_000) as caught:
        with popen(own_shell, tmp_path, "t") as process:
            wait_until(lambda: caught.count == 1)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=50)
        assert (process.returncode, stdout, stderr) == (130, "", "")
    assert described(own_shell, "t")["members"] == []


def test_sigterm_commits_and_leaves(shell, numbers, tmp_path):
    with popen(shell, tmp_path, numbers) as process:
        lines = [process.stdout.readline().strip() for _ in range(30)]
        process.terminate()
        assert process.communicate(timeout=120) == ("", "")
    assert process.returncode == 128 + signal.SIGTERM
    assert sorted(lines) == EVERYTHING
    found = described(shell, numbers)
    assert (found["lag"], found["members"]) == (0, [])


def test_a_group_survives_the_loss_of_a_member(own_broker, own_shell, tmp_path, monkeypatch):
    monkeypatch.setattr(group_member, "SESSION_TIMEOUT_MS", 6000)
    own_shell("topics", "create", "t", "-p", "2")
    own_shell("produce", "t", "-p", "0", stdin=b"a\n")
    own_shell("produce", "t", "-p", "1", stdin=b"b\n")
    with popen(own_shell, tmp_path, "t") as process:
        seen = {process.stdout.readline().strip() for _ in range(2)}
        process.kill()
    assert seen == {"a", "b"}
    own_broker.clock.advance(minutes=1)
    ended = own_shell("consume", "t", "-g", "t", "-o", "beginning", "-e")
    # The command had no time to commit: at least once means that the records arrive again.
    assert sorted(ended.lines) == ["a", "b"]
