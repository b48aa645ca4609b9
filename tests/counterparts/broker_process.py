"""A broker as a process: start, kill -9, restart on the same port, terminate, measure."""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.certificates import Credential
from tests.counterparts.forked import ForkedProcess
from tests.counterparts.probe import HOST, answers_metadata, free_port
from tests.counterparts.service import ProcessHandle
from tests.counterparts.usage import CpuTime, cpu_time, resident_bytes

POLL_S = 0.005
STOP_TIMEOUT_S = 120


class BrokerDied(Exception):
    """The broker's process ended, or did not answer in time; the message has its last output."""


class BrokerProcess(ProcessHandle):
    """One broker on a loopback port with its data in a directory; see the subclasses.

    `directory` keeps the data and the output; without one a temporary directory is used and
    removed at the end.
    """

    name = "broker"
    start_timeout_s = 180.0

    def __init__(self, directory: Path | None = None, **overrides: str) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="broker-") if not directory else None
        self.directory = directory or Path(self._temporary.name if self._temporary else "")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.overrides = {key.replace("_", "."): value for key, value in overrides.items()}
        self.port = free_port()
        self.more_ports: dict[str, int] = {}
        """The ports of listeners beside the PLAINTEXT one, by security protocol."""
        self.start_up_s = 0.0

    def listen(self, protocol: str) -> int:
        """Add a listener of this protocol; called before the start. Returns its port."""
        self.more_ports[protocol] = free_port()
        return self.more_ports[protocol]

    def serve_tls(self, credential: Credential, protocol: str = "SSL") -> Self:
        """Add a listener with TLS; called before the start."""
        self.listen(protocol)
        path = self.directory / "tls.pem"
        path.write_text(credential.key_pem() + credential.chain_pem)
        self.overrides |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
        return self

    # -- what a subclass says ----------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the directory ready for the first start."""

    def command(self) -> list[str]:
        """Return the command line that starts the broker."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Return the environment of the process."""
        return dict(os.environ)

    @property
    def listeners(self) -> str:
        """Return the listeners for clients, as the configuration names them."""
        more = [f"{protocol}://{HOST}:{port}" for protocol, port in self.more_ports.items()]
        return ",".join([self.plain_listener, *more])

    @property
    def plain_listener(self) -> str:
        """Return the listener that every broker here has."""
        return f"PLAINTEXT://{HOST}:{self.port}"

    # -- where it is -------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def data_directory(self) -> Path:
        """The directory in which the partition directories lie."""
        return self.directory / "data"

    @property
    def output_path(self) -> Path:
        return self.directory / "output.log"

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the process and wait until it answers Metadata; sets `start_up_s`."""
        started = time.monotonic()
        with self.output_path.open("ab") as output:
            self._process = self.launch(self.command(), self.environment(), output)
        while not answers_metadata(HOST, self.port):
            if self._process.poll() is not None:
                raise BrokerDied(f"{self.name} exited {self._process.returncode}: {self.output()}")
            if time.monotonic() - started > self.start_timeout_s:
                self.kill()
                raise BrokerDied(f"{self.name} did not answer: {self.output()}")
            time.sleep(POLL_S)
        self.start_up_s = time.monotonic() - started
        return self

    def launch(
        self, command: list[str], environment: dict[str, str], output: IO[bytes]
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        """Start the process, and return before it is ready."""
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )

    def restart(self) -> Self:
        """Start again on the same port and the same data."""
        return self.start()

    def terminate(self) -> int:
        """Send SIGTERM to the process and return its exit code."""
        assert self._process is not None, "not started"
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerDied(f"{self.name} ignored SIGTERM: {self.output()}") from None

    def let_pass(self, seconds: float) -> None:
        """Return when that much time has passed for the broker."""
        time.sleep(seconds)

    def output(self, *, limit: int = 4000) -> str:
        """Return the end of what the process printed."""
        return self.output_path.read_text(errors="replace")[-limit:]

    # -- what it uses ------------------------------------------------------------------------------

    def cpu_time(self) -> CpuTime:
        """Return the CPU time of the process since it started."""
        return cpu_time(self.pid)

    def resident_bytes(self) -> int:
        """Return the resident memory of the process."""
        return resident_bytes(self.pid)

    def __enter__(self) -> Self:
        try:
            self.prepare()
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Kill it and remove what it kept in a temporary directory."""
        self.kill()
        if self._temporary is not None:
            self._temporary.cleanup()
