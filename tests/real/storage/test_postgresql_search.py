"""Retries of servers that take no writes, or refuse, during the search for a primary."""

from __future__ import annotations

import socket
from itertools import pairwise
from types import SimpleNamespace

import psycopg
import pytest
from psycopg import pq

from barnabas.storage.postgresql import primary, search
from barnabas.storage.postgresql.primary import Primary
from barnabas.storage.postgresql.search import AGAIN_S_MAX, AGAIN_S_MIN, STAGGER_S, Search

ADDRESS = "host=standby,gone port=1,2 connect_timeout=60"


class Attempts:
    """One server refuses at once, the other one never answers; time passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.asked_s: list[float] = []
        """The times of requests to the server that refuses."""
        self.other_asked_s: list[float] = []
        self._silent = socket.socketpair()

    def monotonic(self) -> float:
        return self.now_s

    def connect_start(self, address: bytes) -> SimpleNamespace:
        refuses = b"standby" in address
        if refuses:
            self.asked_s.append(self.now_s)
        else:
            self.other_asked_s.append(self.now_s)
        return SimpleNamespace(
            status=pq.ConnStatus.BAD if refuses else pq.ConnStatus.STARTED,
            socket=self._silent[0].fileno(),
            connect_poll=lambda: pq.PollingStatus.READING,
            get_error_message=lambda: "it takes no writes",
            finish=lambda: None,
        )

    def pass_time(self, looking: Search, until_s: float) -> None:
        while self.now_s < until_s:
            looking.step(0)
            self.now_s = round(self.now_s + 0.01, 2)

    def close(self) -> None:
        for each in self._silent:
            each.close()


@pytest.fixture
def attempts(monkeypatch):
    made = Attempts()
    monkeypatch.setattr(search, "monotonic", made.monotonic)
    connecting = SimpleNamespace(connect_start=made.connect_start)
    wrapper = SimpleNamespace(
        PGconn=connecting, PollingStatus=pq.PollingStatus, ConnStatus=pq.ConnStatus
    )
    monkeypatch.setattr(search, "pq", wrapper)
    monkeypatch.setattr(
        search,
        "conninfo_attempts",
        lambda _: [{"host": "standby", "port": "1"}, {"host": "gone", "port": "2"}],
    )
    yield made
    made.close()


def test_next_server_is_tried_at_once_after_a_refusal(attempts):
    with Search(ADDRESS) as looking:
        attempts.pass_time(looking, 0.02)
    assert attempts.other_asked_s == [0]


def test_silent_server_delays_the_next_attempt_by_the_stagger(attempts, monkeypatch):
    monkeypatch.setattr(
        search,
        "conninfo_attempts",
        lambda _: [{"host": "gone", "port": "2"}, {"host": "standby", "port": "1"}],
    )
    with Search(ADDRESS) as looking:
        attempts.pass_time(looking, 0.25)
    assert attempts.other_asked_s == [0]
    assert attempts.asked_s == pytest.approx([STAGGER_S], abs=0.05)


def test_refusing_server_is_tried_less_and_less_often(attempts):
    with Search(ADDRESS) as looking:
        attempts.pass_time(looking, 8)
    pauses_s = [after - before for before, after in pairwise(attempts.asked_s)]
    assert pauses_s == pytest.approx([0.1, 0.2, 0.4, 0.8, 1, 1, 1, 1, 1, 1], abs=0.05)
    assert looking.again_s == AGAIN_S_MAX


def test_next_search_keeps_the_interval_of_the_last(attempts):
    with Search(ADDRESS, again_s=AGAIN_S_MAX) as looking:
        attempts.pass_time(looking, 3)
    assert attempts.asked_s == pytest.approx([0, 1, 2], abs=0.05)


def test_a_primary_keeps_that_from_search_to_search(monkeypatch):
    begun_s = []

    class Searched(Search):
        def __init__(self, address: str, *, again_s: float = AGAIN_S_MIN) -> None:
            begun_s.append(again_s)

        @property
        def again_s(self) -> float:
            return 2 * begun_s[-1]

        def step(self, timeout_ms: int = 0) -> str | None:
            if len(begun_s) < 3:
                raise psycopg.OperationalError
            return "found"

        def close(self) -> None:
            """Ignore the call."""

    monkeypatch.setattr(primary, "Search", Searched)
    server = Primary("host=somewhere")
    for _ in range(2):
        with pytest.raises(psycopg.OperationalError):
            server._find_server()
    assert server._find_server() == "found"
    assert server._find_server() == "found"
    assert begun_s == [AGAIN_S_MIN, 2 * AGAIN_S_MIN, 4 * AGAIN_S_MIN, AGAIN_S_MIN]
