"""DeleteShareGroupOffsets: generated from delete_share_group_offsets.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteShareGroupOffsetsRequestTopic(Structure):
    """Part of DeleteShareGroupOffsets."""

    topic_name: str

    def __init__(self, topic_name: str = "") -> None:
        self.topic_name = topic_name


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteShareGroupOffsetsRequest(Structure):
    """DeleteShareGroupOffsets, versions 0-0."""

    group_id: str
    topics: list[DeleteShareGroupOffsetsRequestTopic]

    def __init__(
        self, group_id: str = "", topics: list[DeleteShareGroupOffsetsRequestTopic] = ABSENT
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteShareGroupOffsetsResponseTopic(Structure):
    """Part of DeleteShareGroupOffsets."""

    topic_name: str
    topic_id: bytes
    error_code: int
    error_message: str | None

    def __init__(
        self, topic_name: str = "", topic_id: bytes = ZERO_UUID, error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteShareGroupOffsetsResponse(Structure):
    """DeleteShareGroupOffsets, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponseTopic]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is ABSENT else responses


def read_delete_share_group_offsets_request_topic(
    reader: Reader, version: int
) -> DeleteShareGroupOffsetsRequestTopic:
    message = DeleteShareGroupOffsetsRequestTopic(reader.string())
    reader.skip_tags()
    return message


def write_delete_share_group_offsets_request_topic(
    writer: Writer, message: DeleteShareGroupOffsetsRequestTopic, version: int
) -> None:
    writer.string(message.topic_name)
    writer.no_tags()


def read_delete_share_group_offsets_request(
    reader: Reader, version: int
) -> DeleteShareGroupOffsetsRequest:
    message = DeleteShareGroupOffsetsRequest(
        reader.string(),
        reader.array(read_delete_share_group_offsets_request_topic, version, 2),
    )
    reader.skip_tags()
    return message


def write_delete_share_group_offsets_request(
    writer: Writer, message: DeleteShareGroupOffsetsRequest, version: int
) -> None:
    writer.string(message.group_id)
    writer.array(message.topics, write_delete_share_group_offsets_request_topic, version)
    writer.no_tags()


def read_delete_share_group_offsets_response_topic(
    reader: Reader, version: int
) -> DeleteShareGroupOffsetsResponseTopic:
    message = DeleteShareGroupOffsetsResponseTopic(
        reader.string(),
        reader.uuid(),
        reader.int16(),
        reader.optional_string(),
    )
    reader.skip_tags()
    return message


def write_delete_share_group_offsets_response_topic(
    writer: Writer, message: DeleteShareGroupOffsetsResponseTopic, version: int
) -> None:
    writer.string(message.topic_name)
    writer.uuid(message.topic_id)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_delete_share_group_offsets_response(
    reader: Reader, version: int
) -> DeleteShareGroupOffsetsResponse:
    message = DeleteShareGroupOffsetsResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.array(read_delete_share_group_offsets_response_topic, version, 21),
    )
    reader.skip_tags()
    return message


def write_delete_share_group_offsets_response(
    writer: Writer, message: DeleteShareGroupOffsetsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.responses, write_delete_share_group_offsets_response_topic, version)
    writer.no_tags()


DELETE_SHARE_GROUP_OFFSETS = Api(
    92,
    "DeleteShareGroupOffsets",
    message_of_fields(
        "DeleteShareGroupOffsetsRequest", (0, 0), 0, read_delete_share_group_offsets_request,
        write_delete_share_group_offsets_request, bounded=True,
    ),
    message_of_fields(
        "DeleteShareGroupOffsetsResponse", (0, 0), 0, read_delete_share_group_offsets_response,
        write_delete_share_group_offsets_response,
    ),
)
