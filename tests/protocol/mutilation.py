"""Ways to spoil the bytes of a message."""

import random
from collections.abc import Callable

ABSURD_INT32 = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\x00\x00\x00", b"\x00\x0f\x42\x41")
ABSURD_VARINT = (b"\xff" * 10, b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80")


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    spoilt = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    return bytes(spoilt)


def cut_short(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def lengthen(data: bytes, rng: random.Random) -> bytes:
    return data + rng.randbytes(rng.randrange(1, 9))


def overwrite_with(data: bytes, rng: random.Random, patches: tuple[bytes, ...]) -> bytes:
    patch, at = rng.choice(patches), rng.randrange(len(data))
    return data[:at] + patch + data[at + len(patch) :]


def absurd_length(data: bytes, rng: random.Random) -> bytes:
    return overwrite_with(data, rng, ABSURD_INT32)


def absurd_varint(data: bytes, rng: random.Random) -> bytes:
    return overwrite_with(data, rng, ABSURD_VARINT)


def drop_piece(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randrange(1, 5) :]


def repeat_piece(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at : at + rng.randrange(1, 20)] * rng.randrange(1, 4) + data[at:]


def noise(data: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(len(data))


MUTATORS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_bits,
    cut_short,
    lengthen,
    absurd_length,
    absurd_varint,
    drop_piece,
    repeat_piece,
    noise,
)
