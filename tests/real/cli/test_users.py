"""Prompt of a password at a terminal."""

from __future__ import annotations

import os
import subprocess

from tests.broker.cli.test_users import broker, lets_in
from tests.real.cli.command import command, environment

__all__ = ["broker"]


def test_a_prompt_shows_nothing_of_the_password(broker, tmp_path):
    terminal, end = os.openpty()
    words = command("users", "create", "alice", "-b", broker.bootstrap_servers)
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *words],
        stdin=end,
        stdout=end,
        stderr=end,
        cwd=tmp_path,
        env=environment(),
    )
    os.close(end)
    try:
        shown = b""
        for prompt in (b"Password of alice: ", b"Once more: "):
            while prompt not in shown:
                shown += os.read(terminal, 1024)
            os.write(terminal, b"typed-secret\n")
        while b"created" not in shown:
            shown += os.read(terminal, 1024)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert b"secret" not in shown
    assert lets_in(broker, "alice", "typed-secret")
