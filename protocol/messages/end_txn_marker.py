"""EndTxnMarker: generated from end_txn_marker.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Message
from barnabas.protocol.wire import Chunks, Structure

pack_i = Struct(">i").pack
unpack_i = Struct(">i").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class EndTxnMarker(Structure):
    """EndTxnMarker, versions 0-0."""

    coordinator_epoch: int

    def __init__(
        self,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch


def decode_v0(view: memoryview, position: int) -> tuple[EndTxnMarker, int]:
    (coordinator_epoch,) = unpack_i(view, position)
    position += 4
    return EndTxnMarker(coordinator_epoch), position


def encode_v0(message: EndTxnMarker, out: bytearray) -> Chunks:
    out += pack_i(message.coordinator_epoch)
    return [out]


END_TXN_MARKER = Message(
    "EndTxnMarker",
    (0, 0),
    NEVER,
    {
        0: (decode_v0, encode_v0),
    },
)
