"""Broker of a run: a process of its own on a free port, with its data in a directory."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import barnabas
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving.guard import VARIABLE
from barnabas.broker.client.wire_client import WireClient
from barnabas.broker.config.addresses import address_text
from barnabas.protocol.errors import KafkaError, Malformed
from barnabas.storage.files.io import private_opener
from barnabas.storage.runtime.chance import random_below
from barnabas.storage.runtime.clock import monotonic, sleep

HOST: Final = "127.0.0.1"
_STARTS_S: Final = 60.0
_LOOK_S: Final = 0.02
_ANSWERS_S: Final = 1.0
_SHOWN_CHARACTERS: Final = 2000
_SETTINGS: Final = {
    "barnabas.http.listener": "",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
}
_FIRST_PORT: Final = 27_000
_PORTS: Final = 5_000
"""Ports below those that systems give to clients: none of them takes the port of a dead broker."""
_ATTEMPTS: Final = 200
_OF_BROKERS: Final = ("KAFKA_", "BARNABAS_")
"""Variables of the environment that would configure the broker."""


class ServedBroker:
    """A durable broker: start, kill -9, start again on the same port and data."""

    def __init__(self, directory: Path, port: int) -> None:
        self.address: Final = (HOST, port)
        """Address of its listener."""
        self._directory = directory
        self._output = directory / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process, and wait until it accepts requests; raises CommandError."""
        settings = {
            "listeners": f"PLAINTEXT://{address_text(*self.address)}",
            "log.dirs": str(self._directory / "data"),
            **_SETTINGS,
        }
        overrides = [f"--override={key}={value}" for key, value in settings.items()]
        with open(self._output, "ab", opener=private_opener) as output:
            self._process = subprocess.Popen(  # noqa: S603 - this program itself
                [sys.executable, "-m", "barnabas", "serve", *overrides],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**package_environment(), VARIABLE: str(self._directory)},
                cwd=self._directory,
                start_new_session=True,
            )
        deadline_s = monotonic() + _STARTS_S
        while not self._accepts_requests():
            if not self.is_running or monotonic() > deadline_s:
                words = self._output.read_text(errors="replace")[-_SHOWN_CHARACTERS:]
                raise CommandError(f"the broker of the run did not start: {words}")
            sleep(_LOOK_S)

    def _accepts_requests(self) -> bool:
        try:
            with WireClient(self.address, timeout_seconds=_ANSWERS_S) as client:
                return bool(client.versions)
        except (OSError, KafkaError, Malformed):
            return False

    def kill(self) -> None:
        """Kill -9 the process, and wait for its end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def package_environment() -> dict[str, str]:
    """Return the environment of another process of this package, without settings of brokers."""
    packages = str(Path(barnabas.__file__).parents[1])
    path = os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")]))
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(_OF_BROKERS)}
    return {**inherited, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def free_port(host: str) -> int:
    """Return a port on which nothing listens; raises OSError."""
    for _ in range(_ATTEMPTS):
        port = _FIRST_PORT + random_below(_PORTS)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind((host, port))
            return port
    raise OSError(f"{host}: no free port in {_ATTEMPTS} attempts")
