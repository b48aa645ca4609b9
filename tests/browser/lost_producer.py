"""`python -m tests.browser.lost_producer PORT ID TOPIC`: opens a pinned transaction, and waits.

The producer has two-phase commit (KIP-939): a kill leaves a transaction that no timeout ends.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace

from tests.checkout import PYTHONPATH
from tests.counterparts.transaction_client import TransactionClient

TIMEOUT_MS = 1000
"""The timeout that the producer requests: its transaction ignores it."""
OPENED = "opened"


def main() -> None:
    """Open a transaction, say so, and keep it open."""
    port, key, topic = sys.argv[1:]
    broker = SimpleNamespace(bootstrap_servers=f"127.0.0.1:{port}")
    with TransactionClient(broker, "lost-producer") as client:
        client.begin(key, topic, 0, timeout_ms=TIMEOUT_MS, is_pinned=True)
        print(OPENED, flush=True)
        time.sleep(600)


@contextlib.contextmanager
def pinned(port: int, key: str, topic: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process with an open transaction."""
    command = [sys.executable, "-m", "tests.browser.lost_producer", str(port), key, topic]
    environment = {"PYTHONPATH": PYTHONPATH}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().strip() == OPENED
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    main()
