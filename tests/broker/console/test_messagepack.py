"""MessagePack as JSON: bytes that msgpack-python has written, beginnings of them, and no sense."""

from __future__ import annotations

import json
import random
import struct

import pytest

from barnabas.broker.console.records.examining import Content
from barnabas.broker.console.records.formats import guess, show
from barnabas.broker.console.records.messagepack import (
    DEPTH_MOST,
    NotMessagePack,
    json_of_messagepack,
)
from barnabas.broker.console.records.pace import ThreadPace

MOST = 100_000

WRITTEN = [
    ("00", "0"),
    ("7f", "127"),
    ("cc80", "128"),
    ("cdffff", "65535"),
    ("ce00010000", "65536"),
    ("cfffffffffffffffff", "18446744073709551615"),
    ("ff", "-1"),
    ("e0", "-32"),
    ("d0df", "-33"),
    ("d1ff7f", "-129"),
    ("d2ffff7fff", "-32769"),
    ("d38000000000000000", "-9223372036854775808"),
    ("cb3ff8000000000000", "1.5"),
    ("ca3fc00000", "1.5"),
    ("cb7ff0000000000000", '"inf"'),
    ("c0", "null"),
    ("c3", "true"),
    ("c2", "false"),
    ("a0", '""'),
    ("a2c3bc", '"ü"'),
    ("a122", '"\\""'),
    ("d920" + "78" * 32, f'"{"x" * 32}"'),
    ("da012c" + "78" * 300, f'"{"x" * 300}"'),
    ("db00011170" + "78" * 70_000, f'"{"x" * 70_000}"'),
    ("a1ff", '{"base64": "/w=="}'),
    ("90", "[]"),
    ("9201920290", "[1,[2,[]]]"),
    ("dc0011" + "01" * 17, f"[{','.join('1' * 17)}]"),
    ("dd00000001c0", "[null]"),
    ("80", "{}"),
    ("81a16181a16291c0", '{"a":{"b":[null]}}'),
    ("8201a178c002", '{"1":"x","null":2}'),
    ("de0001a16190", '{"a":[]}'),
    ("df00000001a16180", '{"a":{}}'),
    ("c401ff", '{"base64": "/w=="}'),
    ("c50001ff", '{"base64": "/w=="}'),
    ("c600000001ff", '{"base64": "/w=="}'),
    ("d5056162", '{"extension": 5, "base64": "YWI="}'),
    ("c70305616263", '{"extension": 5, "base64": "YWJj"}'),
    ("c8000305616263", '{"extension": 5, "base64": "YWJj"}'),
    ("c90000000305616263", '{"extension": 5, "base64": "YWJj"}'),
    ("d6ff00000000", '{"timestamp": "1970-01-01T00:00:00.000000000Z"}'),
    ("d7ff000000146553f100", '{"timestamp": "2023-11-14T22:13:20.000000005Z"}'),
    ("c70cff00000001ffffffffffffffff", '{"timestamp": "1969-12-31T23:59:59.000000001Z"}'),
    ("c70cff000000017fffffffffffffff", '{"extension": -1, "base64": "AAAAAX//////////"}'),
    ("d4ff00", '{"extension": -1, "base64": "AA=="}'),
]


def shown(data, most=MOST, is_cut=False):
    return json_of_messagepack(data, most, ThreadPace(), is_cut=is_cut)


@pytest.mark.parametrize(("written", "expected"), WRITTEN, ids=lambda each: each[:24])
def test_what_another_library_has_written(written, expected):
    data = bytes.fromhex(written)
    assert shown(data) == (expected, False)
    json.loads(expected)
    for end in range(1, min(len(data), 40)):
        text, is_beginning = shown(data[:end], is_cut=True)
        assert is_beginning
        assert expected.startswith(text)
        with pytest.raises(NotMessagePack, match="ends in the middle"):
            shown(data[:end])
    with pytest.raises(NotMessagePack, match="more behind it"):
        shown(data + b"\0")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("c1", "nothing begins with 0xc1"),
        ("8190c0", "a list as a key at byte 1"),
        ("8180c0", "a map as a key at byte 1"),
        ("91" * (DEPTH_MOST + 1) + "c0", "nested deeper"),
        ("", "ends in the middle"),
    ],
)
def test_what_is_none(written, words):
    with pytest.raises(NotMessagePack, match=words):
        shown(bytes.fromhex(written))


def test_no_more_is_read_than_is_shown():
    endless = b"\xdd\xff\xff\xff\xff" + b"\x01" * 100_000
    text, is_beginning = shown(endless, most=50)
    assert is_beginning
    assert len(text) < 60
    deep = b"\x91" * DEPTH_MOST + b"\xc0"
    assert shown(deep) == ("[" * DEPTH_MOST + "null" + "]" * DEPTH_MOST, False)


def test_whatever_bytes_there_are_the_answer_is_json_or_a_reason():
    rng = random.Random(20261126)
    samples = [bytes.fromhex(written) for written, _ in WRITTEN if len(written) < 100]
    answered = refused = 0
    for _ in range(5000):
        data = bytearray(b"\x93" + rng.choice(samples) + rng.choice(samples) + rng.choice(samples))
        for _ in range(rng.randrange(3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            text, _ = shown(bytes(data))
        except NotMessagePack:
            refused += 1
        else:
            json.loads(text)
            answered += 1
    assert answered
    assert refused


def content(data, size=None):
    return Content(data, len(data) if size is None else size)


def test_it_is_guessed_of_lists_and_maps_and_laid_out():
    pace = ThreadPace()
    some = [content(bytes.fromhex("81a16101")), content(bytes.fromhex("9201c0"))]
    assert guess("topic", some, pace) == "messagepack"
    found = show(some[0], "messagepack", MOST, pace)
    assert (found.text, found.is_cut, found.problem) == ('{\n  "a": 1\n}', False, None)
    numbers = [content(struct.pack(">q", number)) for number in range(3)]
    assert guess("topic", numbers, pace) == "integer"
    assert guess("topic", [*some, content(b"\xff\xfe")], pace) == "hex"
    wrong = show(content(b"\xc1"), "messagepack", MOST, pace)
    assert (wrong.format, wrong.text) == ("hex", "c1")
    assert wrong.problem == "nothing begins with 0xc1, at byte 0"
    cut = show(content(bytes.fromhex("81a16192"), size=6), "messagepack", MOST, pace)
    assert (cut.text, cut.is_cut) == ('{\n  "a": [', True)
