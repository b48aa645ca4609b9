"""Api, Message, RecordType and the registry."""

import dataclasses
import subprocess
import sys

import pytest

from barnabas.protocol.api import NEVER, Message, prefix
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.messages import ALL_KEYS, ENTRIES, api_for_key, record_type
from barnabas.protocol.messages.elect_leaders import ELECT_LEADERS, ElectLeadersRequest
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.group_metadata_record import (
    GROUP_METADATA_RECORD,
    GroupMetadataValue,
)
from barnabas.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest
from barnabas.protocol.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.offset_commit_record import (
    OFFSET_COMMIT_RECORD,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.transaction_log_record import (
    TRANSACTION_LOG_RECORD,
    TransactionLogValue,
)


def test_the_registry_and_the_apis_agree():
    assert len(ALL_KEYS) == 59
    assert list(ALL_KEYS) == sorted(ALL_KEYS)
    for key in ALL_KEYS:
        api, entry = api_for_key(key), ENTRIES[key]
        assert (api.key, api.name, api.min_version, api.max_version, api.flexible_from) == (
            entry.key,
            entry.name,
            entry.min_version,
            entry.max_version,
            entry.flexible_from,
        )
        assert api.request.name == f"{api.name}Request"
        assert api.response.name == f"{api.name}Response"
        assert entry.name in repr(api)


def test_the_levels_that_were_decided():
    assert (ENTRIES[18].min_version, ENTRIES[18].max_version) == (0, 4)
    assert (ENTRIES[28].min_version, ENTRIES[28].max_version) == (0, 5)
    assert (ENTRIES[22].min_version, ENTRIES[22].max_version) == (0, 6)
    assert (ENTRIES[0].min_version, ENTRIES[0].max_version) == (3, 13)
    assert ENTRIES[17].flexible_from == NEVER


def test_an_unknown_key_is_a_key_error():
    with pytest.raises(KeyError):
        api_for_key(4)
    with pytest.raises(KeyError):
        record_type("__consumer_offsets", 99)


def test_importing_the_registry_imports_no_message():
    script = (
        "import sys, barnabas.protocol.header, barnabas.protocol.messages as messages\n"
        "loaded = [name for name in sys.modules if name.startswith(messages.__name__ + '.')]\n"
        "assert loaded == ['barnabas.protocol.messages.registry'], loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("version", [2, 14, -1])
def test_a_version_outside_the_range_is_unsupported(version):
    for act in (
        lambda: PRODUCE.decode_request(memoryview(b""), 0, version),
        lambda: PRODUCE.encode_request(ProduceRequest(), version),
    ):
        with pytest.raises(KafkaError) as raised:
            act()
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
        assert "3-13" in str(raised.value)


def test_decoding_starts_at_the_position_and_must_end_with_the_view():
    response = MetadataResponse(cluster_id="c")
    data = b"head" + b"".join(METADATA.encode_response(response, 4))
    assert METADATA.decode_response(memoryview(data), 4, 4) == response
    with pytest.raises(Malformed, match="left over"):
        METADATA.decode_response(memoryview(data + b"\0"), 4, 4)


def test_metadata_of_all_topics_as_librdkafka_asks_for_it():
    # No topics in four bytes where there should be one: read as null, as Kafka reads it.
    data = bytes.fromhex("00000000010000")
    assert METADATA.decode_request(memoryview(data), 0, 13) == MetadataRequest(
        None, allow_auto_topic_creation=False
    )
    with pytest.raises(Malformed):
        METADATA.decode_request(memoryview(data[:3]), 0, 13)


def test_a_part_is_decoded_without_looking_at_what_follows():
    request = MetadataRequest([MetadataRequestTopic(name="t")])
    data = b"".join(METADATA.encode_request(request, 4))
    part = METADATA.request.decode_part
    assert part(memoryview(data + b"more"), 0, 4) == (request, len(data))
    with pytest.raises(Malformed):
        part(memoryview(data[:3]), 0, 4)
    with pytest.raises(KafkaError):
        part(memoryview(data), 0, 99)


def test_encoding_appends_to_the_buffer_it_is_given():
    out = bytearray(b"head")
    chunks = METADATA.encode_request(MetadataRequest([]), 1, out)
    assert chunks == [b"head\0\0\0\0"]
    assert chunks[0] is out


def test_records_are_decoded_as_a_slice_and_encoded_by_reference():
    records = memoryview(bytearray(b"batch" * 1000))
    request = ProduceRequest(None, 1, 0, [TopicProduceData("t", partition_data=[])])
    request.topic_data[0].partition_data.append(PartitionProduceData(0, records))
    for version in range(3, 14):
        chunks = PRODUCE.encode_request(request, version)
        assert any(chunk is records for chunk in chunks)
        frame = bytearray(b"".join(chunks))
        decoded = PRODUCE.decode_request(memoryview(frame), 0, version)
        slice_ = decoded.topic_data[0].partition_data[0].records
        assert isinstance(slice_, memoryview)
        assert slice_.obj is frame
        assert slice_ == records


def test_none_is_refused_where_the_version_allows_no_null():
    with pytest.raises(ValueError, match="topics may not be None"):
        METADATA.encode_request(MetadataRequest(None), 0)
    assert METADATA.encode_request(MetadataRequest(None), 1) == [b"\xff\xff\xff\xff"]
    assert ELECT_LEADERS.encode_request(ElectLeadersRequest(0, None, 5), 0)


def test_a_field_that_a_version_lacks_is_left_out_and_comes_back_as_its_default():
    request = JoinGroupRequest(group_id="g", group_instance_id="instance", reason="why")
    data = b"".join(JOIN_GROUP.encode_request(request, 4))
    decoded = JOIN_GROUP.decode_request(memoryview(data), 0, 4)
    assert (decoded.group_instance_id, decoded.reason) == (None, None)
    assert decoded.group_id == "g"


def test_a_fetch_response_keeps_a_null_and_an_empty_list_apart():
    for version in (4, 12, 18):
        for aborted in (None, []):
            response = FetchResponse(
                responses=[
                    FetchableTopicResponse(
                        partitions=[PartitionData(0, 0, aborted_transactions=aborted)]
                    )
                ]
            )
            data = b"".join(FETCH.encode_response(response, version))
            decoded = FETCH.decode_response(memoryview(data), 0, version)
            assert decoded.responses[0].partitions[0].aborted_transactions == aborted


def test_record_keys_and_values_carry_their_prefix():
    key = OffsetCommitKey("group", "topic", 3)
    data = OFFSET_COMMIT_RECORD.encode_key(key)
    assert data == b"\0\1\0\5group\0\5topic\0\0\0\3"
    assert prefix(data) == OFFSET_COMMIT_RECORD.key_type == 1
    assert OFFSET_COMMIT_RECORD.decode_key(data) == key
    assert record_type("__consumer_offsets", prefix(data)) is OFFSET_COMMIT_RECORD
    value = OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=5)
    assert prefix(OFFSET_COMMIT_RECORD.encode_value(value)) == 4
    for version in (3, 4):
        encoded = OFFSET_COMMIT_RECORD.encode_value(value, version)
        assert prefix(encoded) == version
        assert OFFSET_COMMIT_RECORD.decode_value(encoded) == value
    assert "OffsetCommit" in repr(OFFSET_COMMIT_RECORD)


def test_bad_record_keys_and_values_are_refused():
    key = OFFSET_COMMIT_RECORD.encode_key(OffsetCommitKey("group", "topic", 3))
    for bad in (b"", b"\0", b"\0\2" + key[2:], key[:-1], key + b"\0"):
        with pytest.raises(Malformed):
            OFFSET_COMMIT_RECORD.decode_key(bad)
    with pytest.raises(KafkaError):
        OFFSET_COMMIT_RECORD.decode_value(b"\0\5rest")
    with pytest.raises(Malformed):
        OFFSET_COMMIT_RECORD.decode_value(b"\0\4rest")


def test_versions_written_by_kafka_are_there():
    assert prefix(TRANSACTION_LOG_RECORD.encode_value(TransactionLogValue())) == 1
    assert prefix(GROUP_METADATA_RECORD.encode_value(GroupMetadataValue(), 3)) == 3


def test_a_message_describes_itself():
    assert repr(PRODUCE.request) == "<ProduceRequest 3-13>"
    assert isinstance(PRODUCE.request, Message)


def test_messages_are_dataclasses_with_lists_of_their_own():
    one, other = ProduceRequest(), ProduceRequest()
    assert one == other
    assert one.topic_data is not other.topic_data
    one.topic_data.append(TopicProduceData("t"))
    assert one != other
    assert one != JoinGroupRequest()
    assert [field.name for field in dataclasses.fields(one)] == [
        "transactional_id",
        "acks",
        "timeout_ms",
        "topic_data",
    ]
    assert dataclasses.replace(other, acks=-1) == ProduceRequest(acks=-1)
    assert repr(PartitionProduceData(3)) == "PartitionProduceData(index=3, records=None)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
    with pytest.raises(AttributeError):
        one.misspelt = 1
