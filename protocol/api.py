"""One Kafka API, record type or structure as the wire knows it: versions and codecs, nothing of
brokers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.wire import Chunks

__all__ = ["NEVER", "Api", "ApiEntry", "Chunks", "Message", "RecordType"]

Request = TypeVar("Request")
Response = TypeVar("Response")
Key = TypeVar("Key")
Value = TypeVar("Value")
T = TypeVar("T")

Decoder = Callable[[memoryview, int], tuple[T, int]]
Encoder = Callable[[T, bytearray], Chunks]

# Exceptions of decoding for inconsistent bytes; any other exception is a bug. Mapped to Malformed
# here and for headers in barnabas.protocol.header.
BROKEN_BYTES: Final = (IndexError, struct.error, UnicodeDecodeError)

# The flexible_from of what has no flexible version: above every int16.
NEVER: Final = 0x8000

_VERSION: Final = struct.Struct(">h")


class Message(Generic[T]):
    """One structure in all its versions. ``codecs`` names the first version of each distinct
    layout.
    """

    __slots__ = (
        "_decoders",
        "_encoders",
        "flexible_from",
        "is_request",
        "max_version",
        "min_version",
        "name",
    )

    def __init__(
        self,
        name: str,
        versions: tuple[int, int],
        flexible_from: int,
        codecs: dict[int, tuple[Decoder[T], Encoder[T]]],
    ) -> None:
        self.name = name
        self.min_version, self.max_version = versions
        self.flexible_from = flexible_from
        self.is_request = False
        """Whether bytes that follow the last field are ignored, as Apache Kafka does in requests.

        librdkafka up to 2.16 sends them in Metadata and AlterUserScramCredentials.
        """
        self._decoders: dict[int, Decoder[T]] = {}
        self._encoders: dict[int, Encoder[T]] = {}
        decoder, encoder = codecs[self.min_version]
        for version in range(self.min_version, self.max_version + 1):
            decoder, encoder = codecs.get(version, (decoder, encoder))
            self._decoders[version] = decoder
            self._encoders[version] = encoder

    def __repr__(self) -> str:
        return f"<{self.name} {self.min_version}-{self.max_version}>"

    def decode(self, view: memoryview, position: int, version: int) -> T:
        """Decode from ``position``; raises Malformed unless the message ends where ``view`` does.

        A request may end before it.
        """
        decoder = self._decoders.get(version)
        if decoder is None:
            raise self._unsupported(version)
        try:
            message, end = decoder(view, position)
        except BROKEN_BYTES as error:
            raise self._malformed(version, error) from error
        if end != len(view) and (end > len(view) or not self.is_request):
            raise Malformed(f"{self.name} version {version}: {len(view) - end} bytes left over")
        return message

    def decode_part(self, view: memoryview, position: int, version: int) -> tuple[T, int]:
        """Decode from ``position``; return the message and its end.

        The end may lie beyond ``view`` when the message was cut short: the caller compares.
        """
        decoder = self._decoders.get(version)
        if decoder is None:
            raise self._unsupported(version)
        try:
            return decoder(view, position)
        except BROKEN_BYTES as error:
            raise self._malformed(version, error) from error

    def encode(self, message: T, version: int, out: bytearray | None = None) -> Chunks:
        """Encode to a list of buffers; the first is ``out``, if given, with the message's bytes
        appended.
        """
        encoder = self._encoders.get(version)
        if encoder is None:
            raise self._unsupported(version)
        return encoder(message, bytearray() if out is None else out)

    def tune(
        self,
        first: int,
        last: int,
        *,
        decoder: Decoder[T] | None = None,
        encoder: Encoder[T] | None = None,
    ) -> None:
        """Replace the generated functions of a range of versions by hand-written ones."""
        for version in range(first, last + 1):
            if decoder is not None:
                self._decoders[version] = decoder
            if encoder is not None:
                self._encoders[version] = encoder

    def _malformed(self, version: int, error: Exception) -> Malformed:
        return Malformed(f"{self.name} version {version}: {error}")

    def _unsupported(self, version: int) -> KafkaError:
        return KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{self.name} has versions {self.min_version}-{self.max_version}, not {version}",
        )


class ApiEntry(NamedTuple):
    """Facts about an API that are available without importing its module."""

    key: int
    name: str
    module: str
    min_version: int
    max_version: int
    flexible_from: int


class Api(Generic[Request, Response]):
    """One API: its key, its versions, and the codecs of its request and its response."""

    __slots__ = (
        "decode_request",
        "decode_response",
        "encode_request",
        "encode_response",
        "flexible_from",
        "key",
        "max_version",
        "min_version",
        "name",
        "request",
        "response",
    )

    def __init__(
        self, key: int, name: str, request: Message[Request], response: Message[Response]
    ) -> None:
        self.key = key
        self.name = name
        self.min_version = request.min_version
        self.max_version = request.max_version
        self.flexible_from = request.flexible_from
        self.request = request
        request.is_request = True
        self.response = response
        # Bound once: one attribute look-up and one call per message.
        self.decode_request = request.decode
        self.encode_request = request.encode
        self.decode_response = response.decode
        self.encode_response = response.encode

    def __repr__(self) -> str:
        return f"<Api {self.key} {self.name} {self.min_version}-{self.max_version}>"


class RecordType(Generic[Key, Value]):
    """One kind of coordinator record: a key that starts with ``key_type``, a value that starts with
    its version.

    Both prefixes are int16. ``key_type`` is what Kafka calls the record's api key or, in older
    files, the version of the key.
    """

    __slots__ = ("key", "key_type", "name", "value")

    def __init__(self, key_type: int, name: str, key: Message[Key], value: Message[Value]) -> None:
        self.key_type = key_type
        self.name = name
        self.key = key
        self.value = value

    def __repr__(self) -> str:
        return f"<RecordType {self.key_type} {self.name}>"

    def encode_key(self, key: Key) -> bytes:
        """Encode a record key with its type as prefix."""
        return b"".join(self.key.encode(key, 0, bytearray(_VERSION.pack(self.key_type))))

    def decode_key(self, data: bytes) -> Key:
        """Decode a record key; raises Malformed for another type."""
        key_type = prefix(data)
        if key_type != self.key_type:
            raise Malformed(f"{self.name}: record key of type {key_type}, not {self.key_type}")
        return self.key.decode(memoryview(data), _VERSION.size, 0)

    def encode_value(self, value: Value, version: int | None = None) -> bytes:
        """Encode a record value with its version as prefix, by default the highest one."""
        if version is None:
            version = self.value.max_version
        return b"".join(self.value.encode(value, version, bytearray(_VERSION.pack(version))))

    def decode_value(self, data: bytes) -> Value:
        """Decode a record value; raises KafkaError UNSUPPORTED_VERSION for a later version."""
        return self.value.decode(memoryview(data), _VERSION.size, prefix(data))


def prefix(data: bytes) -> int:
    """Return the int16 that a record key (its type) or record value (its version) starts with."""
    if len(data) < _VERSION.size:
        raise Malformed("record key or value is shorter than its prefix")
    return int(_VERSION.unpack_from(data)[0])


AnyApi = Api[Any, Any]
AnyRecordType = RecordType[Any, Any]
