"""Brokers and commands as processes that are forked by one that has imported `barnabas serve`.

Importing takes 0.5 of the 0.6 seconds of processor time of a start. Run as a script, this is the
process that forks: for each command line that it reads from a socket it forks a process that runs
it, and for each process ID it waits for the end.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

# What a broker has imported when it is ready.
MODULES = (
    "barnabas.broker.cli.main",
    "barnabas.broker.cli.client_settings",
    "barnabas.broker.cli.profiles",
    "barnabas.broker.cli.commands.serve",
    "barnabas.broker.daemon",
    "encodings.idna",
    "uvloop",
)
MESSAGE_BYTES_MAX = 1 << 20


class ForkedProcess:
    """Process of a command, with the methods of ``subprocess.Popen`` that the tests call."""

    def __init__(self, parent: Forks, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._parent = parent
        self._end = os.pidfd_open(pid)
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, or ``None`` while the process runs."""
        return self._exit_code(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code of the process, or raise ``subprocess.TimeoutExpired``."""
        code = self._exit_code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("barnabas", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._end, number)

    def kill(self) -> None:
        """End the process by SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _exit_code(self, timeout_s: float | None) -> int | None:
        if self.returncode is None:
            ended = select.poll()
            ended.register(self._end, select.POLLIN)
            if not ended.poll(None if timeout_s is None else 1000 * timeout_s):
                return None
        with self._lock:
            if self.returncode is None:
                self.returncode = self._parent.ask(self.pid)
                os.close(self._end)
        return self.returncode


class PipedProcess(ForkedProcess):
    """Process whose two outputs are read from pipes, as text."""

    def __init__(self, parent: Forks, pid: int, stdout: int, stderr: int) -> None:
        super().__init__(parent, pid)
        self.stdout = os.fdopen(stdout, encoding="utf-8")
        self.stderr = os.fdopen(stderr, encoding="utf-8")

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read both outputs to their ends; the process is killed after ``timeout`` seconds."""
        with ThreadPoolExecutor(1) as beside, self.stdout, self.stderr:
            errors = beside.submit(self.stderr.read)
            late = threading.Timer(timeout or threading.TIMEOUT_MAX, self.kill)
            late.start()
            try:
                output = self.stdout.read()
                self.wait(timeout)
            finally:
                late.cancel()
            return output, errors.result()


class Forks:
    """Process that forks brokers and commands, with one environment unless another is given."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
            )

    def start(self, arguments: Sequence[str], output: IO[bytes]) -> ForkedProcess:
        """Run ``barnabas`` with ``arguments``, which writes all that it prints to ``output``."""
        message = {"arguments": arguments, "directory": os.getcwd()}
        return ForkedProcess(self, self.ask(message, output.fileno(), output.fileno()))

    def start_piped(
        self, arguments: Sequence[str], directory: str, environment: Mapping[str, str]
    ) -> PipedProcess:
        """Run ``barnabas`` in a directory, in place of the environment in the one given."""
        message = {
            "arguments": arguments,
            "directory": directory,
            "environment": dict(environment),
        }
        stdout, its_stdout = os.pipe()
        stderr, its_stderr = os.pipe()
        try:
            pid = self.ask(message, its_stdout, its_stderr)
        finally:
            os.close(its_stdout)
            os.close(its_stderr)
        return PipedProcess(self, pid, stdout, stderr)

    def close(self) -> None:
        """End the process; the processes that it has forked continue."""
        self._socket.close()
        self._process.wait()

    def ask(self, message: object, *descriptors: int) -> int:
        """Send a message, and return the number in the response."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(message).encode()], descriptors)
            response = self._socket.recv(MESSAGE_BYTES_MAX)
        assert response, f"the process that forks brokers ended: {self._process.wait()}"
        return int(response)


_started: dict[frozenset[tuple[str, str]], Forks] = {}
_starting = threading.Lock()


def forks(environment: Mapping[str, str]) -> Forks:
    """Return the process that forks for this process of tests; the first call starts it."""
    key = frozenset(environment.items())
    with _starting:
        if key not in _started:
            _started[key] = Forks(environment)
    return _started[key]


def _fork_on_request(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Serve a socket to its end; in a forked process, return the message and its two outputs."""
    while True:
        text, descriptors, _, _ = socket.recv_fds(connection, MESSAGE_BYTES_MAX, 2)
        if not text:
            return None
        message = json.loads(text)
        if isinstance(message, int):
            _, status = os.waitpid(message, 0)
            response = os.waitstatus_to_exitcode(status)
        else:
            response = os.fork()
            if response == 0:
                return message, descriptors
            for each in descriptors:
                os.close(each)
        connection.send(b"%d" % response)


def _serve(descriptor: int) -> int:
    for name in MODULES:
        importlib.import_module(name)
    program = importlib.import_module("barnabas.__main__")
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"a process with threads cannot be forked: {threads}"
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=descriptor) as connection:
        request = _fork_on_request(connection)
    if request is None:
        return 0
    message, outputs = request
    for number, output in enumerate(outputs, start=1):
        os.dup2(output, number)
        os.close(output)
    os.chdir(message["directory"])
    if "environment" in message:
        os.environ.clear()
        os.environ.update(message["environment"])
    sys.argv = [str(program.__file__), *message["arguments"]]
    return int(program.main())


if __name__ == "__main__":
    sys.exit(_serve(int(sys.argv[1])))
