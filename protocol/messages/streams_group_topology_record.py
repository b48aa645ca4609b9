"""StreamsGroupTopology: generated from streams_group_topology_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
)

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
unpack_h = Struct(">h").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupTopologyKey(Structure):
    """StreamsGroupTopology, versions 0-0."""

    group_id: str

    def __init__(
        self,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicConfig(Structure):
    """Part of StreamsGroupTopology."""

    key: str
    value: str

    def __init__(
        self,
        key: str = "",
        value: str = "",
    ) -> None:
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
        self,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
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
        self,
        source_topics: list[int] = ABSENT,
        source_topic_regex: list[int] = ABSENT,
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
        self,
        subtopology_id: str = "",
        source_topics: list[str] = ABSENT,
        source_topic_regex: list[str] = ABSENT,
        state_changelog_topics: list[TopicInfo] = ABSENT,
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

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] = ABSENT,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is ABSENT else subtopologies


def decode_key_v0(view: memoryview, position: int) -> tuple[StreamsGroupTopologyKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("StreamsGroupTopologyKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    return StreamsGroupTopologyKey(group_id), position


def encode_key_v0(message: StreamsGroupTopologyKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[StreamsGroupTopologyValue, int]:
    epoch, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 8)
    subtopologies: list[Subtopology] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        subtopology_id = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 1)
        source_topics: list[str] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            source_topics_item = view[position:end].tobytes().decode()
            position = end
            source_topics.append(source_topics_item)
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 1)
        source_topic_regex: list[str] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            source_topic_regex_item = view[position:end].tobytes().decode()
            position = end
            source_topic_regex.append(source_topic_regex_item)
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 9)
        state_changelog_topics: list[TopicInfo] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
            partitions, replication_factor, count = unpack_ihB(view, position)
            position += 7
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 3)
            topic_configs: list[TopicConfig] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                key = view[position:end].tobytes().decode()
                position = end
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                value = view[position:end].tobytes().decode()
                position = end
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                topic_configs.append(TopicConfig(key, value))
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            state_changelog_topics.append(
                TopicInfo(name, partitions, replication_factor, topic_configs)
            )
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 1)
        repartition_sink_topics: list[str] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            repartition_sink_topics_item = view[position:end].tobytes().decode()
            position = end
            repartition_sink_topics.append(repartition_sink_topics_item)
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 9)
        repartition_source_topics: list[TopicInfo] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            repartition_source_topics_name = view[position:end].tobytes().decode()
            position = end
            (
                repartition_source_topics_partitions,
                repartition_source_topics_replication_factor,
                count,
            ) = unpack_ihB(view, position)
            position += 7
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 3)
            repartition_source_topics_topic_configs: list[TopicConfig] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                repartition_source_topics_topic_configs_key = view[position:end].tobytes().decode()
                position = end
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                repartition_source_topics_topic_configs_value = view[position:end].tobytes().decode()
                position = end
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                repartition_source_topics_topic_configs.append(
                    TopicConfig(
                        repartition_source_topics_topic_configs_key,
                        repartition_source_topics_topic_configs_value,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            repartition_source_topics.append(
                TopicInfo(
                    repartition_source_topics_name,
                    repartition_source_topics_partitions,
                    repartition_source_topics_replication_factor,
                    repartition_source_topics_topic_configs,
                )
            )
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        copartition_groups: list[CopartitionGroup] = []
        for _ in range(count - 1):
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 2)
            count -= 1
            copartition_groups_source_topics = list(unpack_from(f">{count}h", view, position))
            position += count * 2
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 2)
            count -= 1
            copartition_groups_source_topic_regex = list(unpack_from(f">{count}h", view, position))
            position += count * 2
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 2)
            count -= 1
            copartition_groups_repartition_source_topics = list(unpack_from(f">{count}h", view, position))
            position += count * 2
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            copartition_groups.append(
                CopartitionGroup(
                    copartition_groups_source_topics,
                    copartition_groups_source_topic_regex,
                    copartition_groups_repartition_source_topics,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        subtopologies.append(
            Subtopology(
                subtopology_id,
                source_topics,
                source_topic_regex,
                state_changelog_topics,
                repartition_sink_topics,
                repartition_source_topics,
                copartition_groups,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return StreamsGroupTopologyValue(epoch, subtopologies), position


def encode_value_v0(message: StreamsGroupTopologyValue, out: bytearray) -> Chunks:
    subtopologies = message.subtopologies
    out += pack_i(message.epoch)
    size = len(subtopologies) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for subtopology in subtopologies:
        subtopology_id = subtopology.subtopology_id
        data = subtopology_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        source_topics = subtopology.source_topics
        size = len(source_topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for source_topics_item in source_topics:
            data = source_topics_item.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        source_topic_regex = subtopology.source_topic_regex
        size = len(source_topic_regex) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for source_topic_regex_item in source_topic_regex:
            data = source_topic_regex_item.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        state_changelog_topics = subtopology.state_changelog_topics
        size = len(state_changelog_topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for topic_info in state_changelog_topics:
            name = topic_info.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            topic_configs = topic_info.topic_configs
            out += pack_ih(topic_info.partitions, topic_info.replication_factor)
            size = len(topic_configs) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for topic_config in topic_configs:
                key = topic_config.key
                data = key.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                value = topic_config.value
                data = value.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                out.append(0)
            out.append(0)
        repartition_sink_topics = subtopology.repartition_sink_topics
        size = len(repartition_sink_topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for repartition_sink_topics_item in repartition_sink_topics:
            data = repartition_sink_topics_item.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        repartition_source_topics = subtopology.repartition_source_topics
        size = len(repartition_source_topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for repartition_source_topics_topic_info in repartition_source_topics:
            repartition_source_topics_topic_info_name = repartition_source_topics_topic_info.name
            data = repartition_source_topics_topic_info_name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            repartition_source_topics_topic_info_topic_configs = repartition_source_topics_topic_info.topic_configs
            out += pack_ih(
                repartition_source_topics_topic_info.partitions,
                repartition_source_topics_topic_info.replication_factor,
            )
            size = len(repartition_source_topics_topic_info_topic_configs) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for topic_configs_topic_config in repartition_source_topics_topic_info_topic_configs:
                topic_configs_topic_config_key = topic_configs_topic_config.key
                data = topic_configs_topic_config_key.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                topic_configs_topic_config_value = topic_configs_topic_config.value
                data = topic_configs_topic_config_value.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                out.append(0)
            out.append(0)
        copartition_groups = subtopology.copartition_groups
        size = len(copartition_groups) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for copartition_group in copartition_groups:
            copartition_group_source_topics = copartition_group.source_topics
            size = len(copartition_group_source_topics) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(copartition_group_source_topics)}h", *copartition_group_source_topics)
            copartition_group_source_topic_regex = copartition_group.source_topic_regex
            size = len(copartition_group_source_topic_regex) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(copartition_group_source_topic_regex)}h", *copartition_group_source_topic_regex)
            copartition_group_repartition_source_topics = copartition_group.repartition_source_topics
            size = len(copartition_group_repartition_source_topics) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(copartition_group_repartition_source_topics)}h", *copartition_group_repartition_source_topics)
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


STREAMS_GROUP_TOPOLOGY_RECORD = RecordType(
    23,
    "StreamsGroupTopology",
    Message(
        "StreamsGroupTopologyKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "StreamsGroupTopologyValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
