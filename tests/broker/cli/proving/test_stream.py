"""Stream of a connection, split into frames."""

from __future__ import annotations

import pytest

from barnabas.broker.cli.proving.proxy import FRAME_BYTES_MAX, Stream
from barnabas.protocol.errors import Malformed


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def test_frames_are_whole_in_pieces_of_any_size():
    data = frame(b"first") + frame(b"") + frame(b"third")
    for size in range(1, len(data) + 1):
        stream, found = Stream(4), []
        for start in range(0, len(data), size):
            stream.add(data[start : start + size])
            found += [bytes(each) for each in stream.frames()]
        assert found == [b"first", b"", b"third"]
        assert stream.is_empty


def test_frame_of_an_impossible_size_is_malformed():
    stream = Stream(4)
    stream.add((FRAME_BYTES_MAX + 1).to_bytes(4, "big"))
    with pytest.raises(Malformed, match="frame of 33554433 bytes"):
        list(stream.frames())


def test_skipped_frame_passes_on_what_arrives():
    stream = Stream(8)
    stream.add(frame(b"abcdef")[:8])
    assert stream.start() == b"\x00\x00\x00\x06abcd"
    assert stream.skip(6) == b"\x00\x00\x00\x06abcd"
    assert stream.add(b"ef" + frame(b"next")) == b"ef"
    assert stream.take(4) == frame(b"next")
