"""`barnabas check` beside a broker, and with a closed pipe."""

from __future__ import annotations

import subprocess

from barnabas.broker.cli.commands import check as check_module
from tests.broker.cli.test_check import check, copy, stopped
from tests.real.cli.command import Served, barnabas, command, environment

__all__ = ["check", "copy", "stopped"]


def test_a_broker_is_using_it(tmp_path):
    with Served(tmp_path):
        ended = barnabas("check", cwd=tmp_path)
    assert ended.stderr == (
        "barnabas: ./data: a broker is using this data directory: "
        "check a copy that 'barnabas backup' makes\n"
    )
    assert ended.returncode == 1


def test_broker_cannot_start_during_a_check(check, copy, monkeypatch):
    refused = []
    real = check_module._check

    def check_while_a_broker_tries(*arguments, **more):
        refused.append(barnabas("serve", f"-Xlog.dirs={copy}", cwd=copy.parent))
        return real(*arguments, **more)

    monkeypatch.setattr(check_module, "_check", check_while_a_broker_tries)
    assert check("-d", copy).exit_code == 0
    assert "another broker is using this data directory" in refused[0].stderr


def test_closed_pipe_does_not_kill_the_command(copy, tmp_path):
    with subprocess.Popen(
        command("check", "-d", copy),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 1
