"""Coordinator records as the classes in Apache Kafka 4.3.0's jars wrote them.

Neither codec oracle knows these structures, so their bytes are kept: in each line of the file are
module, section, version and what Kafka's own class wrote, without the int16 prefix.
"""

from pathlib import Path

import pytest

from barnabas.protocol.messages.consumer_group_member_metadata_record import (
    CONSUMER_GROUP_MEMBER_METADATA_RECORD,
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from barnabas.protocol.messages.streams_group_metadata_record import (
    STREAMS_GROUP_METADATA_RECORD,
    StreamsGroupMetadataValue,
)
from barnabas.protocol.messages.transaction_log_record import (
    TRANSACTION_LOG_RECORD,
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from tests.protocol.random_messages import all_cases

FILE = Path(__file__).with_name("golden_records.txt")
GOLDEN = [line.split() for line in FILE.read_text().splitlines()]
CASES = {(case.module, case.section, case.version): case for case in all_cases()}


@pytest.mark.parametrize(
    ("module", "section", "version"), sorted({tuple(line[:3]) for line in GOLDEN})
)
def test_what_kafka_wrote_is_read_and_written_again(module, section, version):
    case = CASES[module, section, int(version)]
    for *head, data in GOLDEN:
        if head == [module, section, version]:
            written = bytes.fromhex(data)
            message = case.message.decode(memoryview(written), 0, case.version)
            assert b"".join(case.message.encode(message, case.version)) == written


def test_every_record_type_and_version_has_golden_bytes():
    kept = {(module, section, int(version)) for module, section, version, _ in GOLDEN}
    assert kept == {key for key, case in CASES.items() if case.schema.kind == "record"}


@pytest.mark.parametrize(
    ("classic_member_metadata", "tags"),
    [
        # Null is written: what is left out is a structure full of defaults.
        (None, "01 00 01 00"),
        (ClassicMemberMetadata(), "00"),
        (ClassicMemberMetadata(5), "01 00 07 01 00000005 01 00"),
    ],
)
def test_null_in_a_tagged_structure_is_sent(classic_member_metadata, tags):
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=classic_member_metadata)
    data = CONSUMER_GROUP_MEMBER_METADATA_RECORD.encode_value(value)
    assert data.hex() == "0000" + "010101010101ffffffff01" + tags.replace(" ", "")
    assert CONSUMER_GROUP_MEMBER_METADATA_RECORD.decode_value(data) == value


@pytest.mark.parametrize(("configs", "tags"), [(None, "01 01 01 00"), ([], "00")])
def test_null_in_a_tagged_list_is_sent(configs, tags):
    value = StreamsGroupMetadataValue(last_assignment_configs=configs)
    data = STREAMS_GROUP_METADATA_RECORD.encode_value(value)
    assert data.hex().endswith(tags.replace(" ", ""))
    assert STREAMS_GROUP_METADATA_RECORD.decode_value(data) == value


def test_a_transaction_log_record_by_hand():
    key = TRANSACTION_LOG_RECORD.encode_key(TransactionLogKey("id"))
    assert key == b"\0\0\0\2id"
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=1,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=[PartitionsSchema("t", [0, 1])],
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=4,
        client_transaction_version=2,
    )
    assert TRANSACTION_LOG_RECORD.encode_value(value).hex(" ", 1) == (
        "00 01 "  # version
        "00 00 00 00 00 00 00 07 00 01 00 00 ea 60 01 "
        "02 02 74 03 00 00 00 00 00 00 00 01 00 "  # one topic, two partitions, no tags
        "00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 04 "
        "01 02 02 00 02"  # client_transaction_version
    )
