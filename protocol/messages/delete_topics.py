"""DeleteTopics: generated from delete_topics.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer, required


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteTopicState(Structure):
    """Part of DeleteTopics."""

    name: str | None
    topic_id: bytes

    def __init__(self, name: str | None = None, topic_id: bytes = ZERO_UUID) -> None:
        self.name = name
        self.topic_id = topic_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteTopicsRequest(Structure):
    """DeleteTopics, versions 1-6."""

    topics: list[DeleteTopicState]
    topic_names: list[str]
    timeout_ms: int

    def __init__(
        self, topics: list[DeleteTopicState] = ABSENT, topic_names: list[str] = ABSENT,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.topic_names = [] if topic_names is ABSENT else topic_names
        self.timeout_ms = timeout_ms


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeletableTopicResult(Structure):
    """Part of DeleteTopics."""

    name: str | None
    topic_id: bytes
    error_code: int
    error_message: str | None

    def __init__(
        self, name: str | None = "", topic_id: bytes = ZERO_UUID, error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteTopicsResponse(Structure):
    """DeleteTopics, versions 1-6."""

    throttle_time_ms: int
    responses: list[DeletableTopicResult]

    def __init__(
        self, throttle_time_ms: int = 0, responses: list[DeletableTopicResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is ABSENT else responses


def read_delete_topic_state(reader: Reader, version: int) -> DeleteTopicState:
    message = DeleteTopicState(reader.optional_string(), reader.uuid())
    reader.skip_tags()
    return message


def write_delete_topic_state(writer: Writer, message: DeleteTopicState, version: int) -> None:
    writer.optional_string(message.name)
    writer.uuid(message.topic_id)
    writer.no_tags()


def read_delete_topics_request(reader: Reader, version: int) -> DeleteTopicsRequest:
    message = DeleteTopicsRequest(
        reader.array(read_delete_topic_state, version, 18) if version >= 6 else [],
        reader.values(reader.string, 1) if version <= 5 else [],
        reader.int32(),
    )
    reader.skip_tags()
    return message


def write_delete_topics_request(writer: Writer, message: DeleteTopicsRequest, version: int) -> None:
    if version >= 6:
        writer.array(message.topics, write_delete_topic_state, version)
    if version <= 5:
        writer.values(message.topic_names, writer.string)
    writer.int32(message.timeout_ms)
    writer.no_tags()


def read_deletable_topic_result(reader: Reader, version: int) -> DeletableTopicResult:
    message = DeletableTopicResult(
        (reader.optional_string() if version >= 6 else reader.string()),
        reader.uuid() if version >= 6 else ZERO_UUID,
        reader.int16(),
        reader.optional_string() if version >= 5 else None,
    )
    reader.skip_tags()
    return message


def write_deletable_topic_result(
    writer: Writer, message: DeletableTopicResult, version: int
) -> None:
    if version >= 6:
        writer.optional_string(message.name)
    else:
        writer.string(required(message.name, "DeletableTopicResult.name"))
    if version >= 6:
        writer.uuid(message.topic_id)
    writer.int16(message.error_code)
    if version >= 5:
        writer.optional_string(message.error_message)
    writer.no_tags()


def read_delete_topics_response(reader: Reader, version: int) -> DeleteTopicsResponse:
    message = DeleteTopicsResponse(
        reader.int32(),
        reader.array(read_deletable_topic_result, version, 4),
    )
    reader.skip_tags()
    return message


def write_delete_topics_response(
    writer: Writer, message: DeleteTopicsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.responses, write_deletable_topic_result, version)
    writer.no_tags()


DELETE_TOPICS = Api(
    20,
    "DeleteTopics",
    message_of_fields(
        "DeleteTopicsRequest", (1, 6), 4, read_delete_topics_request, write_delete_topics_request,
        bounded=True,
    ),
    message_of_fields(
        "DeleteTopicsResponse", (1, 6), 4, read_delete_topics_response, write_delete_topics_response
    ),
)
