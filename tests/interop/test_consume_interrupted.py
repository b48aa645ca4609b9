"""`barnabas consume -g` on a terminal, ended by Ctrl-C at random moments while records come in.

No record is printed twice or left out, whenever Ctrl-C comes, and no dead member holds up the next
start.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import termios
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.cli.records.group_member import SESSION_TIMEOUT_MS
from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST
from tests.products import case
from tests.requests import create_topic, produce_request, produced
from tests.seeds import SEED
from tests.waiting import wait_until

TOPIC, GROUP, PARTITIONS = "interrupted", "readers", 3
FIRST_RECORDS, BATCH_RECORDS = 3000, 20
GONE_SECONDS_MAX = 30.0
"""Maximum time in which a member that left disappears, however busy the machine is; a dead member
stays longer."""
assert GONE_SECONDS_MAX < SESSION_TIMEOUT_MS / 1000
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
LINE = re.compile(rb"([0-9]+) ([0-9]+)\n")


@pytest.fixture
def broker() -> Iterator[BarnabasProcess]:
    running = BarnabasProcess()
    running.overrides |= SETTINGS
    with running:
        yield running


def produce(client: WireClient, partition: int, count: int) -> None:
    batch = encode_batch([Record(at, 0, None, b"x" * 40) for at in range(count)])
    response = client.ask(PRODUCE, produce_request({(TOPIC, partition): batch}), 9)
    assert produced(response).error_code == ErrorCode.NONE


class Load:
    """Records that keep coming in, so that there is always something to print."""

    def __init__(self, broker: BarnabasProcess) -> None:
        self._client = WireClient((HOST, broker.port))
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        create_topic(self._client, TOPIC, PARTITIONS)
        for partition in range(PARTITIONS):
            wait_until(lambda number=partition: self._has_begun(number))
        self._thread.start()

    def _has_begun(self, partition: int) -> bool:
        try:
            produce(self._client, partition, FIRST_RECORDS)
        except AssertionError:
            return False
        return True

    def _run(self) -> None:
        while not self._ends.wait(0.02):
            for partition in range(PARTITIONS):
                produce(self._client, partition, BATCH_RECORDS)

    def __exit__(self, *_error: object) -> None:
        self._ends.set()
        self._thread.join()
        self._client.close()


class Terminal:
    """A pseudo-terminal with a command on it."""

    def __init__(self, *command: str) -> None:
        self._main, other = pty.openpty()
        settings = termios.tcgetattr(other)
        settings[1] &= ~termios.OPOST  # Lines end as they were written.
        settings[3] &= ~termios.ECHO
        settings[3] |= termios.NOFLSH  # Ctrl-C throws nothing away that was printed before it.
        termios.tcsetattr(other, termios.TCSANOW, settings)
        self.printed = b""
        self.first_line_s: float | None = None
        self._started_s = time.monotonic()
        self.process = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(other), os.O_RDWR)),  # noqa: PLW1509
            env=BarnabasProcess.python_environment(),
        )
        os.close(other)
        self._is_caught = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._main, 1 << 16):
                if self.first_line_s is None:
                    self.first_line_s = time.monotonic() - self._started_s
                self.printed += data
        except OSError:  # The other side is closed.
            return

    def is_ours(self) -> bool:
        """Whether Ctrl-C meets the command, and not the Python that starts it.

        Python catches the signal before any code of Barnabas runs. Barnabas resets the handler
        first; a signal before that prints a traceback. A check that is too rare to see the handler
        sees the first line.
        """
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        (caught,) = re.findall(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
        is_caught = bool(int(caught, 16) >> (signal.SIGINT - 1) & 1)
        self._is_caught |= is_caught
        return (self._is_caught and not is_caught) or self.first_line_s is not None

    def ctrl_c(self) -> bytes:
        """Type Ctrl-C, wait for the end, return what was written to standard error."""
        os.write(self._main, b"\x03")
        _, errors = self.process.communicate(timeout=60)
        self._reader.join()
        os.close(self._main)
        return errors


def members(client: WireClient) -> int:
    """Return the number of members of the group."""
    (group,) = client.ask(DESCRIBE_GROUPS, DescribeGroupsRequest([GROUP]), 5).groups
    return len(group.members)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", [case(10, in_test=True), case(50, in_test=False)])
def test_ctrl_c_at_random_moments(broker, rounds):
    random = Random(SEED)
    printed: dict[int, list[int]] = defaultdict(list)
    slowest_s = 0.0
    with Load(broker), WireClient((HOST, broker.port)) as client:
        for number in range(rounds):
            terminal = Terminal(
                *(BarnabasProcess.interpreter, "-m", "barnabas", "consume", TOPIC, "-g", GROUP),
                *("-o", "beginning", "-f", "%p %o\\n", "-b", f"{HOST}:{broker.port}"),
            )
            # From the first moment at which it is the command that is met, to its printing.
            if number % 5 != 0:
                wait_until(lambda each=terminal: each.first_line_s is not None)
                slowest_s = max(slowest_s, terminal.first_line_s or 0.0)
                time.sleep(random.random() * 0.5)
            else:
                wait_until(terminal.is_ours, pause_s=0.001)
                time.sleep(random.random() * 0.4)
            errors = terminal.ctrl_c()
            assert (terminal.process.returncode, errors) in ((130, b""), (-2, b""))
            # The next run would have to wait until a dead member's session ends.
            wait_until(lambda: not members(client), "it has left", seconds=GONE_SECONDS_MAX)
            rest = LINE.sub(b"", terminal.printed)
            assert rest == b"", f"round {number}: {rest!r}"
            for partition, offset in LINE.findall(terminal.printed):
                printed[int(partition)].append(int(offset))
    for partition, offsets in printed.items():
        assert offsets == list(range(len(offsets))), f"partition {partition}"
    count = sum(map(len, printed.values()))
    print(f"{count} records in {rounds} rounds, first lines after {slowest_s:.2f} s at most")
    assert count > PARTITIONS * FIRST_RECORDS
