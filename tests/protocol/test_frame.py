"""FrameBuffer: every byte comes out once, in order, whole frames only, nothing is kept."""

from __future__ import annotations

import resource
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.frame import (
    MIN_FRAME_BYTES,
    PIECE_BYTES,
    STASH_BYTES,
    FrameBuffer,
    FrameRefused,
    RingPool,
)

RING = 64 * 1024
LIMIT = 1024 * 1024


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def payload(number: int, size: int) -> bytes:
    return (struct.pack(">i", number) * (size // 4 + 1))[:size]


def fill(frames: FrameBuffer, data: bytes) -> int:
    """Receive as much of ``data`` as there is room for; return how much."""
    target = frames.writable()
    size = min(len(target), len(data))
    assert size > 0
    target[:size] = data[:size]
    frames.received(size)
    return size


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def take_all(frames: FrameBuffer) -> list[bytes]:
    taken = []
    while True:
        frame = frames.next_frame()
        if frame is not None:
            taken.append(bytes(frame))
        elif frames.wanted_bytes:
            frames.grant()
        else:
            return taken


@pytest.fixture
def pool():
    return RingPool(RING)


@pytest.fixture
def frames(pool):
    return FrameBuffer(pool, LIMIT)


def test_a_frame_is_a_view_of_the_ring(frames):
    fill(frames, framed(b"0123456789"))
    frame = frames.next_frame()
    assert frame == b"0123456789"
    assert not frames.frame_is_owned
    assert frames.next_frame() is None


def test_a_connection_without_bytes_has_no_ring(pool, frames):
    assert pool.borrowed == 0
    fill(frames, framed(b"0123456789"))
    assert pool.borrowed == 1
    take_all(frames)
    frames.settle()
    assert (pool.borrowed, pool.unused) == (0, 1)


def test_asking_where_to_receive_borrows_nothing(pool):
    many = [FrameBuffer(pool, LIMIT) for _ in range(100)]
    for frames in many:
        assert len(frames.writable()) == RING
        fill(frames, b"\0\0\0")
        frames.settle()
        assert len(frames.writable()) == RING - 3
    assert (pool.borrowed, pool.unused) == (0, 1)
    assert {frames.pending_bytes for frames in many} == {3}
    fill(many[7], b"\x0a0123456789")
    assert take_all(many[7]) == [b"0123456789"]


def test_a_short_rest_is_stashed_and_a_long_one_keeps_the_ring(pool, frames):
    data = framed(payload(7, STASH_BYTES * 2))
    fill(frames, data[:STASH_BYTES])
    assert frames.next_frame() is None
    frames.settle()
    assert pool.borrowed == 0
    assert frames.pending_bytes == STASH_BYTES
    fill(frames, data[STASH_BYTES:-1])
    assert frames.next_frame() is None
    frames.settle()
    assert pool.borrowed == 1
    frames.shrink()
    assert pool.borrowed == 0
    assert frames.pending_bytes == len(data) - 1
    fill(frames, data[-1:])
    assert take_all(frames) == [data[4:]]


def test_many_incomplete_frames_hold_what_they_have_received_and_no_ring(pool):
    many = [FrameBuffer(pool, LIMIT) for _ in range(100)]
    data = framed(payload(7, STASH_BYTES * 4))
    for frames in many:
        fill(frames, data[:-1])
        assert frames.next_frame() is None
        frames.settle()
    assert pool.borrowed == 32
    for frames in many:
        fill(frames, data[-1:])
        assert take_all(frames) == [data[4:]]
        frames.settle()
    assert pool.borrowed == 0


def test_whole_frames_survive_being_stashed_while_nobody_takes_them(pool, frames):
    first, second = framed(b"first....."), framed(b"second....")
    fill(frames, first + second)
    frames.settle()
    assert pool.borrowed == 0
    assert frames.next_key() == struct.unpack(">h", b"fi")[0]
    assert take_all(frames) == [first[4:], second[4:]]


def test_the_pool_keeps_few_rings():
    pool = RingPool(1024, keep=2)
    first = pool.peek()
    rings = [pool.take() for _ in range(5)]
    assert rings[0] is first
    for ring in rings:
        pool.give(ring)
    assert (pool.borrowed, pool.unused) == (0, 2)
    assert pool.take() is rings[1]  # the one that was given last, of those kept


@pytest.mark.parametrize("size", [MIN_FRAME_BYTES, LIMIT])
def test_lengths_at_the_limits(frames, size):
    data = framed(payload(1, size))
    taken = []
    while data:
        data = data[fill(frames, data) :]
        taken += take_all(frames)
        frames.settle()
    assert [len(frame) for frame in taken] == [size]


@pytest.mark.parametrize("size", [MIN_FRAME_BYTES - 1, 0, -1, -2, -(2**31), LIMIT + 1, 2**31 - 1])
def test_lengths_outside_the_limits_are_refused(frames, size):
    fill(frames, struct.pack(">i", size))
    with pytest.raises(FrameRefused, match=rf"a frame of {size} bytes"):
        frames.next_frame()


def test_a_frame_larger_than_the_ring_waits_for_its_grant(pool, frames):
    data = framed(payload(3, RING))
    sent = fill(frames, data[:1000])
    assert frames.next_frame() is None
    assert frames.wanted_bytes == RING
    assert frames.full
    frames.settle()
    frames.grant()
    assert pool.borrowed == 0
    assert not frames.full
    room = frames.writable()
    assert len(room) == len(data) - sent  # not a byte of what follows gets in
    fill(frames, data[sent:])
    assert frames.full
    frame = frames.next_frame()
    assert frames.frame_is_owned
    fill(frames, framed(b"0123456789"))
    assert frame == data[4:]  # it has a buffer of its own
    assert take_all(frames) == [b"0123456789"]


def test_a_frame_that_waits_for_its_grant_holds_no_ring(pool, frames):
    fill(frames, framed(payload(3, RING))[:50_000])
    assert frames.next_frame() is None
    assert frames.settle() == frames.held_bytes == 50_000
    assert frames.is_large
    assert pool.borrowed == 0
    frames.grant()
    assert frames.held_bytes == frames.settle() == 50_000 - 4
    assert frames.missing_bytes == RING - 50_000 + 4


def test_a_large_frame_is_received_piece_by_piece(pool):
    frames = FrameBuffer(pool, 100 * LIMIT)
    fill(frames, framed(payload(3, 5 * PIECE_BYTES))[:1000])
    frames.next_frame()
    frames.grant()
    assert len(frames.writable()) == PIECE_BYTES


def test_the_buffer_of_a_large_frame_becomes_resident_as_it_fills(pool):
    frames = FrameBuffer(pool, 100 * LIMIT)
    before = resident_bytes()
    fill(frames, framed(payload(3, RING))[:4])
    fill(frames, b"x" * 1000)
    frames._ring[:4] = struct.pack(">i", 100 * LIMIT)
    assert frames.next_frame() is None
    frames.grant()
    assert resident_bytes() - before < 5_000_000
    for _ in range(20):
        fill(frames, b"y" * PIECE_BYTES)
    assert 15_000_000 < resident_bytes() - before < 30_000_000


def test_what_is_missing_and_what_is_held(pool, frames):
    assert (frames.missing_bytes, frames.held_bytes) == (4, 0)
    data = framed(payload(7, STASH_BYTES * 3))
    fill(frames, data[:3])
    frames.settle()
    assert (frames.missing_bytes, frames.held_bytes) == (1, 0)
    fill(frames, data[3:4100])
    assert frames.settle() == 0
    assert frames.missing_bytes == len(data) - 4100
    frames.shrink()
    assert frames.held_bytes == 4100
    fill(frames, data[4100:])
    assert frames.missing_bytes == 0
    assert not frames.is_large


def test_the_largest_frame_of_the_ring_fits(frames):
    data = framed(payload(5, RING - 4))
    assert fill(frames, data) == len(data)
    frame = frames.next_frame()
    assert frame == data[4:]
    assert not frames.frame_is_owned


def test_the_key_of_the_next_request_is_known_after_six_bytes(frames):
    data = framed(struct.pack(">hh", 18, 3) + b"0123456789")
    assert frames.next_key() is None
    for number, byte in enumerate(data, start=1):
        fill(frames, bytes([byte]))
        assert frames.next_key() == (18 if number >= 6 else None)
        if number % 2:
            frames.settle()


def test_frames_that_wait_fill_the_ring_and_no_more(frames):
    frame = framed(payload(1, 1000))
    data = frame * 200
    sent = 0
    while not frames.full:
        sent += fill(frames, data[sent:])
    assert sent == RING
    assert len(take_all(frames)) == RING // len(frame)
    assert not frames.full
    fill(frames, data[sent:])


def test_release_gives_everything_back(pool, frames):
    fill(frames, framed(payload(1, RING))[:100])
    frames.next_frame()
    frames.grant()
    frames.release()
    assert frames.pending_bytes == 0
    fill(frames, b"abc")
    frames.release()
    assert pool.borrowed == 0
    assert frames.pending_bytes == 0


@given(
    sizes=st.lists(
        st.one_of(
            st.integers(MIN_FRAME_BYTES, 300),
            st.integers(MIN_FRAME_BYTES, 40_000),
            st.integers(RING - 10, RING + 10),
            st.integers(MIN_FRAME_BYTES, 3 * RING),
        ),
        max_size=25,
    ),
    cuts=st.lists(st.integers(1, 90_000), min_size=1, max_size=40),
    pauses=st.lists(st.booleans(), min_size=1, max_size=20),
)
def test_any_frames_cut_anywhere_come_out_whole_and_in_order(sizes, cuts, pauses):
    pool = RingPool(RING)
    frames = FrameBuffer(pool, 4 * RING)
    expected = [payload(number, size) for number, size in enumerate(sizes)]
    data = b"".join(map(framed, expected))
    taken: list[bytes] = []
    turn = 0
    while data:
        turn += 1
        if not frames.full:
            cut = min(cuts[turn % len(cuts)], len(data))
            data = data[fill(frames, data[:cut]) :]
        if not pauses[turn % len(pauses)] or frames.full:
            taken += take_all(frames)
        if turn % 3:
            frames.settle()
        elif turn % 5 == 0:
            frames.shrink()
    taken += take_all(frames)
    assert taken == expected
    frames.settle()
    assert pool.borrowed == 0
    assert frames.pending_bytes == 0
