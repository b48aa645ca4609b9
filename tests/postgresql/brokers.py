"""Brokers of one cluster as processes, and what they are linked by."""

from __future__ import annotations

import contextlib
import signal
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST
from tests.counterparts.postgresql_servers import ROLE, Pair
from tests.counterparts.probe import free_port
from tests.postgresql.links import Between, Links

LEASE_MS = 2000
STORE = "store"
AMONG_BROKERS = "BROKERS"
"""The listener at which they meet each other."""


class Member(BarnabasProcess):
    """One of them."""

    def __init__(self, directory: Path, address: str, **overrides: str) -> None:
        self.http_port = free_port()
        settings = {
            "barnabas.metadata": address,
            "barnabas.lease.ms": str(LEASE_MS),
            "barnabas.http.listener": f"{HOST}:{self.http_port}",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
        }
        super().__init__(directory, **settings | overrides)

    def probe(self, path: str) -> int:
        """Return the status of an HTTP page, or 0 if no server responds."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.http_port}{path}") as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


class LinkedMember(Member):
    """One that reaches the others, and PostgreSQL, by links that can be cut."""

    def __init__(
        self, directory: Path, number: int, pair: Pair, links: Links, **overrides: str
    ) -> None:
        self.number = number
        hosts = []
        for server in (pair.primary, pair.standby):
            port = free_port()
            links.listen(port, server.port, Between(number, STORE))
            hosts.append(f"{HOST}:{port}")
        super().__init__(
            directory,
            f"postgresql://{ROLE}@{','.join(hosts)}/postgres?target_session_attrs=read-write",
            **{"node.id": str(number), "inter.broker.listener.name": AMONG_BROKERS} | overrides,
        )
        own_port, shown_port = self.listen(AMONG_BROKERS), free_port()
        links.listen_for_brokers(shown_port, own_port, number)
        self.overrides |= {
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{AMONG_BROKERS}:PLAINTEXT",
            "advertised.listeners": f"{self.plain_listener},{AMONG_BROKERS}://{HOST}:{shown_port}",
        }

    def to_store(self) -> list[Between]:
        """Return the link to PostgreSQL."""
        return [Between(self.number, STORE)]

    def to(self, other: LinkedMember) -> Between:
        """Return the link by which this broker asks another one."""
        return Between(f"barnabas-broker-{self.number}", other.number)

    def pause(self) -> None:
        """Stop it in its tracks; it believes that no time passes."""
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process after ``pause``."""
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGCONT)


def start(members: Iterable[Member]) -> None:
    """Start all at once."""
    started = list(members)
    with ThreadPoolExecutor(len(started)) as threads:
        list(threads.map(Member.start, started))


@contextlib.contextmanager
def running(members: list[Member]) -> Iterator[None]:
    """Start brokers together, kill them at the end; an error shows what they have said."""
    try:
        start(members)
        yield
    except BaseException:
        for each in members:
            print(each.output())
        raise
    finally:
        for each in members:
            each.kill()
