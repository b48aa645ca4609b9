"""Apache Kafka's TransactionalMessageCopier as a process that is killed and started again."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from tests.counterparts import kafka_tools
from tests.counterparts.kafka_tools import tool_command

WAIT_S = 240
TRANSACTION_SIZE = 20


class Copier:
    """TransactionalMessageCopier in several lives; it reports every transaction that it ends."""

    def __init__(self, servers: str, topic: str, directory: Path) -> None:
        self._output = directory / f"{topic}-copier"
        self._output.touch()
        self._command = tool_command(
            kafka_tools.TRANSACTIONAL_MESSAGE_COPIER,
            *("--broker-list", servers, "--input-topic", f"{topic}-in", "--input-partition", "0"),
            *("--output-topic", f"{topic}-out", "--consumer-group", f"group-of-{topic}"),
            *("--transactional-id", topic, "--transaction-size", str(TRANSACTION_SIZE)),
            *("--enable-random-aborts", "--use-group-metadata"),
        )
        self.start()

    def start(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    @property
    def transactions(self) -> int:
        """The number of transactions that all its processes ended."""
        return self._text().count('"stage":"ProcessLoop"')

    def wait_for_more(self) -> None:
        """Wait until it has ended two more."""
        enough = self.transactions + 2
        deadline = time.monotonic() + WAIT_S
        while self.transactions < enough and self._process.poll() is None:
            assert time.monotonic() < deadline, self._text()[-3000:]
            time.sleep(0.01)

    def kill(self) -> bool:
        """Return whether that has ended it."""
        self._process.kill()
        return self._process.wait() == -signal.SIGKILL

    def finish(self) -> None:
        assert self._process.wait(WAIT_S) == 0, self._text()[-3000:]

    def _text(self) -> str:
        return self._output.read_text(errors="replace")
