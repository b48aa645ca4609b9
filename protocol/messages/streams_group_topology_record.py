"""StreamsGroupTopology: generated from streams_group_topology_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupTopologyKey(Structure):
    """StreamsGroupTopology, versions 0-0."""

    group_id: str

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicConfig(Structure):
    """Part of StreamsGroupTopology."""

    key: str
    value: str

    def __init__(self, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicInfo(Structure):
    """Part of StreamsGroupTopology."""

    name: str
    partitions: int
    replication_factor: int
    topic_configs: list[TopicConfig]

    def __init__(
        self, name: str = "", partitions: int = 0, replication_factor: int = 0,
        topic_configs: list[TopicConfig] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is ABSENT else topic_configs


@dataclass(slots=True, init=False, repr=False, eq=False)
class CopartitionGroup(Structure):
    """Part of StreamsGroupTopology."""

    source_topics: list[int]
    source_topic_regex: list[int]
    repartition_source_topics: list[int]

    def __init__(
        self, source_topics: list[int] = ABSENT, source_topic_regex: list[int] = ABSENT,
        repartition_source_topics: list[int] = ABSENT,
    ) -> None:
        self.source_topics = [] if source_topics is ABSENT else source_topics
        self.source_topic_regex = [] if source_topic_regex is ABSENT else source_topic_regex
        self.repartition_source_topics = [] if repartition_source_topics is ABSENT else repartition_source_topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class Subtopology(Structure):
    """Part of StreamsGroupTopology."""

    subtopology_id: str
    source_topics: list[str]
    source_topic_regex: list[str]
    state_changelog_topics: list[TopicInfo]
    repartition_sink_topics: list[str]
    repartition_source_topics: list[TopicInfo]
    copartition_groups: list[CopartitionGroup]

    def __init__(
        self, subtopology_id: str = "", source_topics: list[str] = ABSENT,
        source_topic_regex: list[str] = ABSENT, state_changelog_topics: list[TopicInfo] = ABSENT,
        repartition_sink_topics: list[str] = ABSENT,
        repartition_source_topics: list[TopicInfo] = ABSENT,
        copartition_groups: list[CopartitionGroup] = ABSENT,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is ABSENT else source_topics
        self.source_topic_regex = [] if source_topic_regex is ABSENT else source_topic_regex
        self.state_changelog_topics = [] if state_changelog_topics is ABSENT else state_changelog_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is ABSENT else repartition_sink_topics
        self.repartition_source_topics = [] if repartition_source_topics is ABSENT else repartition_source_topics
        self.copartition_groups = [] if copartition_groups is ABSENT else copartition_groups


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupTopologyValue(Structure):
    """StreamsGroupTopology, versions 0-0."""

    epoch: int
    subtopologies: list[Subtopology]

    def __init__(self, epoch: int = 0, subtopologies: list[Subtopology] = ABSENT) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is ABSENT else subtopologies


def read_streams_group_topology_key(reader: Reader, version: int) -> StreamsGroupTopologyKey:
    return StreamsGroupTopologyKey(reader.string())


def write_streams_group_topology_key(
    writer: Writer, message: StreamsGroupTopologyKey, version: int
) -> None:
    writer.string(message.group_id)


def read_topic_config(reader: Reader, version: int) -> TopicConfig:
    message = TopicConfig(reader.string(), reader.string())
    reader.skip_tags()
    return message


def write_topic_config(writer: Writer, message: TopicConfig, version: int) -> None:
    writer.string(message.key)
    writer.string(message.value)
    writer.no_tags()


def read_topic_info(reader: Reader, version: int) -> TopicInfo:
    message = TopicInfo(
        reader.string(),
        reader.int32(),
        reader.int16(),
        reader.array(read_topic_config, version, 3),
    )
    reader.skip_tags()
    return message


def write_topic_info(writer: Writer, message: TopicInfo, version: int) -> None:
    writer.string(message.name)
    writer.int32(message.partitions)
    writer.int16(message.replication_factor)
    writer.array(message.topic_configs, write_topic_config, version)
    writer.no_tags()


def read_copartition_group(reader: Reader, version: int) -> CopartitionGroup:
    message = CopartitionGroup(
        reader.values(reader.int16, 2),
        reader.values(reader.int16, 2),
        reader.values(reader.int16, 2),
    )
    reader.skip_tags()
    return message


def write_copartition_group(writer: Writer, message: CopartitionGroup, version: int) -> None:
    writer.values(message.source_topics, writer.int16)
    writer.values(message.source_topic_regex, writer.int16)
    writer.values(message.repartition_source_topics, writer.int16)
    writer.no_tags()


def read_subtopology(reader: Reader, version: int) -> Subtopology:
    message = Subtopology(
        reader.string(),
        reader.values(reader.string, 1),
        reader.values(reader.string, 1),
        reader.array(read_topic_info, version, 9),
        reader.values(reader.string, 1),
        reader.array(read_topic_info, version, 9),
        reader.array(read_copartition_group, version, 4),
    )
    reader.skip_tags()
    return message


def write_subtopology(writer: Writer, message: Subtopology, version: int) -> None:
    writer.string(message.subtopology_id)
    writer.values(message.source_topics, writer.string)
    writer.values(message.source_topic_regex, writer.string)
    writer.array(message.state_changelog_topics, write_topic_info, version)
    writer.values(message.repartition_sink_topics, writer.string)
    writer.array(message.repartition_source_topics, write_topic_info, version)
    writer.array(message.copartition_groups, write_copartition_group, version)
    writer.no_tags()


def read_streams_group_topology_value(reader: Reader, version: int) -> StreamsGroupTopologyValue:
    message = StreamsGroupTopologyValue(reader.int32(), reader.array(read_subtopology, version, 8))
    reader.skip_tags()
    return message


def write_streams_group_topology_value(
    writer: Writer, message: StreamsGroupTopologyValue, version: int
) -> None:
    writer.int32(message.epoch)
    writer.array(message.subtopologies, write_subtopology, version)
    writer.no_tags()


STREAMS_GROUP_TOPOLOGY_RECORD = RecordType(
    23,
    "StreamsGroupTopology",
    message_of_fields(
        "StreamsGroupTopologyKey", (0, 0), NEVER, read_streams_group_topology_key,
        write_streams_group_topology_key,
    ),
    message_of_fields(
        "StreamsGroupTopologyValue", (0, 0), 0, read_streams_group_topology_value,
        write_streams_group_topology_value,
    ),
)
