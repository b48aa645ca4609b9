"""A blocking socket of a World does what the kernel's does."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from socket import SO_LINGER, SOL_SOCKET

import pytest

from barnabas.broker.runtime.simulated import simulated_host
from barnabas.storage.runtime.clock import sleep
from barnabas.testing import World

MORE_THAN_BUFFERS = 1 << 20


@contextmanager
def pair(world_seed: int = 1) -> Iterator[tuple[World, object, object]]:
    """Both ends of a connection in a World."""
    with World(world_seed) as world:
        host = simulated_host()
        assert host is not None
        ours, theirs = host.pair()
        with ours, theirs:
            yield world, ours, theirs


def test_receive_of_nothing_returns_at_once() -> None:
    with pair() as (world, ours, _):
        before_s = world.now_s
        assert ours.recv(0) == b""
        assert world.now_s == before_s


def test_one_thread_sends_while_another_receives() -> None:
    with pair() as (world, ours, theirs):

        def answer() -> None:
            sleep(1)
            left = MORE_THAN_BUFFERS
            while left:
                left -= len(theirs.recv(1 << 16))
            theirs.sendall(b"all of it")

        join_sender = world.start("sends", lambda: ours.sendall(bytes(MORE_THAN_BUFFERS)))
        join_peer = world.start("answers", answer)
        sleep(0.5)
        assert ours.recv(100) == b"all of it"
        join_sender()
        join_peer()


def test_sender_without_room_ends_after_its_timeout() -> None:
    with pair() as (world, ours, _):
        ours.settimeout(5)
        before_s = world.now_s
        with pytest.raises(TimeoutError):
            ours.sendall(bytes(MORE_THAN_BUFFERS))
        assert world.now_s - before_s == pytest.approx(5, abs=0.01)


def test_file_reads_to_the_end_after_its_socket_was_closed() -> None:
    with pair() as (_, ours, theirs):
        with ours.makefile("rb") as file:
            ours.close()
            theirs.sendall(b"one\ntwo\n")
            theirs.close()
            assert file.readline() == b"one\n"
            assert file.read() == b"two\n"
        with pytest.raises(OSError, match="Bad file descriptor"):
            ours.recv(1)


def test_bytes_before_a_reset_can_still_be_received() -> None:
    with pair() as (world, ours, theirs):
        ours.sendall(b"last words")
        ours.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        ours.close()
        world.sleep(1)
        assert theirs.recv(4) == b"last"
        assert theirs.recv(100) == b" words"
        with pytest.raises(ConnectionResetError):
            theirs.recv(1)
