"""Current connections: only a peer's newest one for each purpose handles requests (R10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.cluster.peers.sessions import Hello, HelloRefused, PeerSessions


class Line:
    """A connection that can be closed, as the registry knows it."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    def close(self, reason: str) -> None:
        self.closed.append(reason)


def hello(number, node_id=1, session=5, purpose="markers"):
    return Hello(node_id, session, purpose, number)


def test_a_newer_connection_ends_the_one_before():
    sessions, first, second = PeerSessions(), Line(), Line()
    older = sessions.take(hello(1), first.close)
    newer = sessions.take(hello(2), second.close)
    assert (older.is_ended, newer.is_ended) == (True, False)
    assert first.closed == ["reason=broker 1 has opened another connection for markers"]
    assert not second.closed
    assert older.is_gone
    assert len(sessions) == 1


@pytest.mark.parametrize("number", [1, 2])
def test_older_hello_is_refused_and_ends_no_connection(number):
    sessions, line = PeerSessions(), Line()
    link = sessions.take(hello(2), line.close)
    with pytest.raises(HelloRefused, match="newer connection"):
        sessions.take(hello(number), Line().close)
    assert not link.is_ended
    assert not line.closed


def test_the_number_holds_beyond_the_end_of_its_connection():
    sessions, line = PeerSessions(), Line()
    link = sessions.take(hello(2), line.close)
    link.gone()
    with pytest.raises(HelloRefused):
        sessions.take(hello(1), Line().close)
    sessions.take(hello(3), Line().close)
    assert link.is_ended, "what it still has in hand must not go on"
    assert not line.closed, "it is closed already"


@pytest.mark.parametrize(
    "other", [{"node_id": 2}, {"session": 6}, {"purpose": "verification"}], ids=str
)
def test_others_are_left_alone(other):
    sessions, line = PeerSessions(), Line()
    link = sessions.take(hello(2), line.close)
    sessions.take(hello(1, **other), Line().close)
    assert not link.is_ended
    assert not line.closed


def test_new_connection_replaces_oldest_closed_one():
    sessions = PeerSessions(links_max=3)
    links = [sessions.take(hello(1, node_id=node), Line().close) for node in range(3)]
    with pytest.raises(HelloRefused, match="3 connections"):
        sessions.take(hello(1, node_id=9), Line().close)
    links[1].gone()
    links[2].gone()
    sessions.take(hello(1, node_id=9), Line().close)
    assert len(sessions) == 3
    sessions.take(hello(2, node_id=2), Line().close)
    assert links[2].is_ended, "node 2 was remembered, node 1 was not"
    assert not links[1].is_ended


def test_a_purpose_of_any_length_is_not_kept():
    with pytest.raises(HelloRefused, match="no purpose"):
        PeerSessions().take(hello(1, purpose="x" * 33), Line().close)


KEYS = [(node, session, purpose) for node in (1, 2) for session in (1, 2) for purpose in "mv"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hello", "request", "request", "lost"]),
        st.integers(0, len(KEYS) - 1),
        st.integers(1, 6),
    ),
    max_size=60,
)


@given(STEPS)
def test_once_a_newer_connection_is_handled_nothing_of_an_older_one_is(steps):
    """Hellos arrive in any order; a request is handled if its connection is the current one."""
    sessions = PeerSessions()
    links: dict[tuple[int, int], object] = {}
    handled: dict[int, list[int]] = {}
    for what, key, number in steps:
        link = links.get((key, number))
        if what == "hello" and link is None:
            try:
                links[key, number] = sessions.take(Hello(*KEYS[key], number), Line().close)
            except HelloRefused:
                newest = max(each for each_key, each in links if each_key == key)
                assert newest >= number
        elif what == "request" and link is not None and not link.is_ended:
            handled.setdefault(key, []).append(number)
        elif what == "lost" and link is not None:
            link.gone()
    for numbers in handled.values():
        assert numbers == sorted(numbers)
    for (key, number), link in links.items():
        newest = max(each for each_key, each in links if each_key == key)
        assert link.is_ended == (number != newest)
    assert len(sessions) == len({key for key, _ in links})
