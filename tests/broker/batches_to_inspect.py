"""Batches of very many records, or of garbage, which a broker looks into before it takes them."""

from __future__ import annotations

from barnabas.protocol.compression import NONE, ZSTD, compress
from barnabas.protocol.records import HEADER_BYTES, Record, encode_batch, read_header, seal, varint
from tests.broker.data_plane import created, topic_name

BIG = str(64 * 1024 * 1024)


def create(broker, request, partitions=1, suffix="", **configs):
    name = topic_name(request.node.name) + suffix
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    return created(broker, name, partitions, settings)


def many(count, *, key, compression=ZSTD, **producer):
    keyed = b"\1" if key is None else b"\0"
    body = bytearray()
    for number in range(count):
        record = b"\0\0" + varint(number) + keyed + b"\1\0"
        body += varint(len(record)) + record
    first = encode_batch([Record(0, 0, b"", None)], compression=compression, **producer)
    header = read_header(first)._replace(record_count=count, last_offset_delta=count - 1)
    return memoryview(bytearray(seal(header, compress(compression, bytes(body)))))


def spoiled(good, compression=NONE):
    body = encode_batch([Record(0, 0, b"k", b"v" * 30)])[HEADER_BYTES:-1] + b"\4"
    return memoryview(bytearray(seal(read_header(good), compress(compression, body))))
