"""RemoveRaftVoter: generated from remove_raft_voter.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import ZERO_UUID, Chunks, Structure, put_varint, skip_tags, varint_tail

pack_i16sx = Struct(">i16sx").pack
pack_ih = Struct(">ih").pack
unpack_i16sB = Struct(">i16sB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class RemoveRaftVoterRequest(Structure):
    """RemoveRaftVoter, versions 0-0."""

    cluster_id: str | None
    voter_id: int
    voter_directory_id: bytes

    def __init__(
        self,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class RemoveRaftVoterResponse(Structure):
    """RemoveRaftVoter, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message


def decode_request_v0(view: memoryview, position: int) -> tuple[RemoveRaftVoterRequest, int]:
    size = view[position]
    position += 1
    cluster_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        cluster_id = view[position:end].tobytes().decode()
        position = end
    voter_id, voter_directory_id, tags = unpack_i16sB(view, position)
    position += 21
    if tags:
        position = skip_tags(view, position, tags)
    return RemoveRaftVoterRequest(cluster_id, voter_id, voter_directory_id), position


def encode_request_v0(message: RemoveRaftVoterRequest, out: bytearray) -> Chunks:
    cluster_id = message.cluster_id
    if cluster_id is None:
        out.append(0)
    else:
        data = cluster_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_i16sx(message.voter_id, message.voter_directory_id)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[RemoveRaftVoterResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return RemoveRaftVoterResponse(throttle_time_ms, error_code, error_message), position


def encode_response_v0(message: RemoveRaftVoterResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_ih(message.throttle_time_ms, message.error_code)
    if error_message is None:
        out.append(0)
    else:
        data = error_message.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out.append(0)
    return [out]


REMOVE_RAFT_VOTER = Api(
    81,
    "RemoveRaftVoter",
    Message(
        "RemoveRaftVoterRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "RemoveRaftVoterResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
