"""The real command as a process, in its own directory and without KAFKA_ variables of the user."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

from tests.counterparts import probe
from tests.counterparts.barnabas_process import BarnabasProcess

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


def command(*arguments):
    return [sys.executable, "-m", "barnabas", *map(str, arguments)]


def barnabas(*arguments, cwd, env=None, timeout_s=120):
    """Run a command to its end. Nothing may ever look like a traceback."""
    result = subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert "Traceback" not in result.stderr + result.stdout
    return result


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
        self, directory, *arguments, env=None, port=None, more_listeners="", own_listeners=False
    ):
        """``own_listeners``: the arguments say where the broker listens, and about HTTP."""
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
        self.process = subprocess.Popen(
            command("serve", *self._where[:1], *self._arguments, *self._where[1:]),
            cwd=self._directory,
            env=environment(self._env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
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
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
