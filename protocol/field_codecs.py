"""Messages that are read and written field by field: see ``reader.py`` and ``writer.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from barnabas.protocol.api import Chunks, Decoder, Encoder, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.reader import Reader
from barnabas.protocol.writer import Writer

T = TypeVar("T")

Read = Callable[[Reader, int], T]
Write = Callable[[Writer, T, int], None]


def message_of_fields(
    name: str,
    versions: tuple[int, int],
    flexible_from: int,
    read: Read[T],
    write: Write[T],
    *,
    bounded: bool = False,
) -> Message[T]:
    """Return a message in all its versions.

    ``bounded`` is set for requests: see Reader.
    """
    first, last = versions
    codecs = {
        version: (
            _decoder(name, read, version, flexible=version >= flexible_from, bounded=bounded),
            _encoder(write, version, flexible=version >= flexible_from),
        )
        for version in range(first, last + 1)
    }
    return Message(name, versions, flexible_from, codecs)


def _decoder(
    name: str, read: Read[T], version: int, *, flexible: bool, bounded: bool
) -> Decoder[T]:
    def decode(view: memoryview, position: int) -> tuple[T, int]:
        reader = Reader(view, position, flexible=flexible, bounded=bounded)
        try:
            return read(reader, version), reader.position
        except Malformed as error:
            raise type(error)(f"{name} version {version}: {error}") from error

    return decode


def _encoder(write: Write[T], version: int, *, flexible: bool) -> Encoder[T]:
    def encode(message: T, out: bytearray) -> Chunks:
        writer = Writer(out, flexible=flexible)
        write(writer, message, version)
        return [*writer.chunks, writer.out]

    return encode
