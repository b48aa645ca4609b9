"""The messages of kafka-python for a refused login.

The client runs in a process of its own. If its constructor raises, it leaves a thread that
continues to connect, and pytest would report the thread's sockets in a later test.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys

import kafka
from kafka.errors import KafkaError

from tests.counterparts.logins import Login, kafka_python_settings

TIMEOUT_S = 60


def refusal(servers: str, login: Login) -> str:
    """Return the error as the client words it; empty if it is let in."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", __name__],
        input=pickle.dumps((servers, login)),
        stdout=subprocess.PIPE,
        timeout=TIMEOUT_S,
        check=True,
    )
    return ended.stdout.decode()


def logged_losses(servers: str, login: Login) -> list[str]:
    """Return the log lines of the client for each connection that it loses while it is refused."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", __name__, "logging"],
        input=pickle.dumps((servers, login)),
        capture_output=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    lines = ended.stderr.decode().splitlines()
    return [line for line in lines if "Connection lost" in line]


def _main() -> None:
    servers, login = pickle.loads(sys.stdin.buffer.read())
    settings = kafka_python_settings(login)
    if sys.argv[1:]:
        logging.basicConfig(level=logging.ERROR)
    try:
        kafka.KafkaAdminClient(
            bootstrap_servers=servers, bootstrap_timeout_ms=2000, **settings
        ).close()
    except KafkaError as error:
        print(f"{type(error).__name__}: {error}", end="", flush=True)
    os._exit(0)  # The thread that is left would keep the process.


if __name__ == "__main__":
    _main()
