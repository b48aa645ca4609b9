"""The real command as a process, in its own directory and without KAFKA_ variables of the user.

Its process is forked by one that has imported the command, unless ``forked`` is False.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

from tests.counterparts import probe
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.forked import forks

READY = (
    "[KafkaServer id=1] started: Transitioning from RECOVERY to RUNNING (Kafka Server started)\n"
)


# What the tests themselves run with; in development mode asyncio warns of slow callbacks.
NOT_FOR_BROKERS = {"CLUSTER_ID", "PYTHONDEVMODE"}


def environment(more=None):
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("KAFKA_") and key not in NOT_FOR_BROKERS
    }
    return {**kept, "PYTHONPATH": BarnabasProcess.packages, "COLUMNS": "80", **(more or {})}


PARENTS_ENVIRONMENT = {**environment(), "PYTHONSAFEPATH": "1"}
PARENTS_ENVIRONMENT.pop("PYTEST_CURRENT_TEST", None)


def command(*arguments):
    return [sys.executable, "-m", "barnabas", *map(str, arguments)]


def start(*arguments, cwd, env=None, forked=BarnabasProcess.is_forked):
    """Start a command whose outputs are pipes."""
    if forked:
        parent = forks(PARENTS_ENVIRONMENT)
        return parent.start_piped([*map(str, arguments)], str(cwd), environment(env))
    return subprocess.Popen(
        command(*arguments),
        cwd=cwd,
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def barnabas(*arguments, cwd, env=None, timeout_s=120):
    """Run a command to its end. Nothing may ever look like a traceback."""
    process = start(*arguments, cwd=cwd, env=env)
    stdout, stderr = process.communicate(timeout=timeout_s)
    assert "Traceback" not in stderr + stdout
    return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)


def error_of(result, exit_code):
    """Return the one line that a failed command printed."""
    assert result.returncode == exit_code, result.stderr
    assert result.stdout == ""
    said = [line for line in result.stderr.splitlines() if line.startswith("barnabas: ")]
    assert len(said) == 1
    assert result.stderr.endswith(said[0] + "\n")
    return said[0]


def free_port():
    return probe.free_port()


class Served:
    """``with Served(tmp_path) as broker:`` a broker process that has said it is ready."""

    def __init__(
        self,
        directory,
        *arguments,
        env=None,
        port=None,
        more_listeners="",
        own_listeners=False,
        forked=BarnabasProcess.is_forked,
    ):
        """``own_listeners``: the arguments say where the broker listens, and about HTTP."""
        self._forked = forked
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._directory = directory
        self._arguments = arguments
        self._env = env
        self._where = [
            "-Xbarnabas.http.listener=",
            f"-Xlisteners=PLAINTEXT://{self.address}{more_listeners}",
        ]
        if own_listeners:
            self._where.clear()

    def __enter__(self):
        words = ("serve", *self._where[:1], *self._arguments, *self._where[1:])
        self.process = start(*words, cwd=self._directory, env=self._env, forked=self._forked)
        self.listening = []
        self.ready_line = self._line()
        while self.ready_line.startswith("listening on "):
            self.listening.append(self.ready_line.rstrip("\n"))
            self.ready_line = self._line()
        if not self.ready_line:
            self.process.kill()
            raise AssertionError(self.process.communicate()[1])
        return self

    def _line(self):
        if not self.listening:
            readable, _, _ = select.select([self.process.stdout], [], [], 120)
            if not readable:
                return ""
        return self.process.stdout.readline()

    def stop(self, number=signal.SIGTERM, timeout_s=120):
        """Send a signal, wait for the end; return exit code, standard output and error."""
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=timeout_s)
        assert "Traceback" not in stderr
        return self.process.returncode, self.ready_line + stdout, stderr

    def __exit__(self, *_):
        self.process.kill()
        if not self.process.stdout.closed:
            self.process.communicate()
