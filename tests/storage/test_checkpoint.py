"""Our checkpoint under damage, and Kafka's small files as its release 4.3.0 wrote them."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.log.checkpoint import (
    Checkpoint,
    CorruptCheckpoint,
    CorruptFile,
    MetaProperties,
    PartitionCheckpoint,
    SegmentSwap,
    decode_checkpoint,
    decode_leader_epochs,
    decode_meta_properties,
    decode_offset_checkpoint,
    decode_partition_metadata,
    encode_checkpoint,
    encode_leader_epochs,
    encode_meta_properties,
    encode_offset_checkpoint,
    encode_partition_metadata,
    newest_checkpoint,
)
from tests.storage.golden import PARTITIONS, kafka_files

LONG = st.integers(-(2**63), 2**63 - 1)
PARTITION = PartitionCheckpoint(3, 0, 1000, 64_000, 10, 900)
SWAP = SegmentSwap(3, 6, (100, 200, 300))
CHECKPOINT = Checkpoint(7, 4711, (PARTITION, PARTITION._replace(partition_id=4)), True, (SWAP,))
OFFSETS = st.lists(LONG, max_size=5).map(tuple)


@given(
    st.lists(st.builds(PartitionCheckpoint, *[LONG] * 10), max_size=20),
    LONG,
    LONG,
    st.booleans(),
    st.lists(st.builds(SegmentSwap, LONG, LONG, OFFSETS), max_size=5),
)
def test_a_checkpoint_reads_back(partitions, generation, sequence, clean, swaps):
    checkpoint = Checkpoint(generation, sequence, tuple(partitions), clean, tuple(swaps))
    assert decode_checkpoint(encode_checkpoint(checkpoint)) == checkpoint


def test_a_checkpoint_of_the_first_release_is_understood():
    head = encode_checkpoint(Checkpoint(7, 4711))[:-4]
    body = struct.pack(">qqqqqqqq", *range(8))
    data = sealed(head[:8] + b"\0\1" + head[10:32] + struct.pack(">I", 1) + body)
    (partition,) = decode_checkpoint(data).partitions
    assert partition[:8] == tuple(range(8))
    assert (partition.clean_offset, partition.compacted_offset) == (0, 0)


def test_every_flipped_bit_of_a_checkpoint_is_noticed():
    data = encode_checkpoint(CHECKPOINT)
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(CorruptCheckpoint):
                decode_checkpoint(bytes(damaged))


def test_every_other_length_of_a_checkpoint_is_noticed():
    data = encode_checkpoint(CHECKPOINT)
    for end in range(len(data)):
        with pytest.raises(CorruptCheckpoint):
            decode_checkpoint(data[:end])
        with pytest.raises(CorruptCheckpoint):
            decode_checkpoint(data[:end] + bytes(len(data) - end))
    with pytest.raises(CorruptCheckpoint):
        decode_checkpoint(data + b"\0")


def sealed(data):
    """The bytes with the checksum that they should have."""
    checksum = crc32c(data[16:], crc32c(data[:12]))
    return data[:12] + struct.pack(">I", checksum) + data[16:]


def test_whole_bytes_that_are_no_checkpoint_of_this_version_are_refused():
    data = encode_checkpoint(CHECKPOINT)
    assert sealed(data) == data
    with pytest.raises(CorruptCheckpoint, match="version 4"):
        decode_checkpoint(sealed(data[:8] + b"\0\4" + data[10:]))
    with pytest.raises(CorruptCheckpoint, match="do not make"):
        decode_checkpoint(sealed(data + b"\0"))
    with pytest.raises(CorruptCheckpoint, match="do not fit"):
        decode_checkpoint(sealed(data[:-64]))


def test_the_newest_whole_checkpoint_counts():
    old, new = (encode_checkpoint(Checkpoint(generation, 1)) for generation in (8, 9))
    torn = new[:-1] + b"?"
    assert newest_checkpoint(old, new).generation == 9
    assert newest_checkpoint(new, old).generation == 9
    assert newest_checkpoint(old, torn).generation == 8
    assert newest_checkpoint(None, old).generation == 8
    assert newest_checkpoint(b"", torn) is None
    assert newest_checkpoint(None, None) is None
    assert newest_checkpoint() is None


# ------------------------------------------------------------------------------------ Kafka's files


@pytest.mark.parametrize("name", ["recovery-point", "replication"])
def test_kafkas_offset_checkpoints_are_understood(name):
    data = kafka_files()[f"{name}-offset-checkpoint"]
    offsets = decode_offset_checkpoint(data)
    assert offsets["tx", 0] == 808
    assert offsets["segments", 0] == 3020
    assert offsets["__transaction_state", 0] > 26
    ours = encode_offset_checkpoint(offsets)
    assert sorted(ours.splitlines()) == sorted(data.splitlines())
    assert ours[:2] == data[:2]
    assert ours.endswith(b"\n")


def test_checkpoints_without_entries_are_understood():
    assert decode_offset_checkpoint(kafka_files()["log-start-offset-checkpoint"]) == {}
    assert decode_offset_checkpoint(kafka_files()["cleaner-offset-checkpoint"]) == {}
    assert encode_offset_checkpoint({}) == kafka_files()["log-start-offset-checkpoint"]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_kafkas_partition_files_are_what_we_write(partition):
    epochs = kafka_files()[f"{partition}/leader-epoch-checkpoint"]
    assert encode_leader_epochs(decode_leader_epochs(epochs)) == epochs
    metadata = kafka_files()[f"{partition}/partition.metadata"]
    topic_id = decode_partition_metadata(metadata)
    assert len(topic_id) == 16
    assert encode_partition_metadata(topic_id) == metadata


def test_kafkas_meta_properties_are_understood():
    data = kafka_files()["meta.properties"]
    properties = decode_meta_properties(data)
    assert properties.node_id == 1
    assert len(properties.cluster_id) == 22
    assert len(properties.directory_id) == 16
    ours = encode_meta_properties(properties)
    theirs = [line for line in data.splitlines() if not line.startswith(b"#")]
    assert sorted(ours.splitlines()) == sorted(theirs)
    assert decode_meta_properties(ours) == properties


topics = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)


@given(st.dictionaries(st.tuples(topics, st.integers(0, 10_000)), st.integers(0, 2**63 - 1)))
def test_offset_checkpoints_read_back(offsets):
    assert decode_offset_checkpoint(encode_offset_checkpoint(offsets)) == offsets


def test_leader_epochs_read_back():
    epochs = [(1, 0), (2, 0), (7, 2**40)]
    assert encode_leader_epochs(epochs) == b"0\n3\n1 0\n2 0\n7 1099511627776\n"
    assert decode_leader_epochs(encode_leader_epochs(epochs)) == epochs


@given(st.binary(min_size=16, max_size=16))
def test_partition_metadata_reads_back(topic_id):
    assert decode_partition_metadata(encode_partition_metadata(topic_id)) == topic_id


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**31 - 1))
def test_meta_properties_read_back(directory_id, node_id):
    properties = MetaProperties("JcylzkSHS82qRfZFyhlmFQ", node_id, directory_id)
    assert decode_meta_properties(encode_meta_properties(properties)) == properties


def test_lines_that_mean_nothing_are_skipped():
    topic_id = bytes(range(16))
    data = b"\nnothing\n" + encode_partition_metadata(topic_id) + b"\n"
    assert decode_partition_metadata(data) == topic_id


def test_properties_escaped_by_java_are_understood():
    data = b"#c\n!c\ncluster.id=my\\:cluster\nnode.id=3\nversion=1\ndirectory.id=" + b"A" * 22
    assert decode_meta_properties(data) == MetaProperties("my:cluster", 3, bytes(16))


@pytest.mark.parametrize(
    "data",
    [
        b"0",
        b"1\n0\n",
        b"x\n0\n",
        b"0\nx\n",
        b"0\n1\n",
        b"0\n1\na 0 1\nb 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 1 2\n",
        b"0\n1\na x 1\n",
        b"0\n1\na 0 x\n",
        b"\xff\xfe",
    ],
)
def test_a_damaged_offset_checkpoint_is_refused(data):
    with pytest.raises(CorruptFile):
        decode_offset_checkpoint(data)


@pytest.mark.parametrize("data", [b"0\n2\n2 0\n1 5\n", b"0\n2\n1 5\n2 4\n", b"0\n2\n1 5\n1 6\n"])
def test_leader_epochs_that_go_back_are_refused(data):
    with pytest.raises(CorruptFile, match="after"):
        decode_leader_epochs(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 1\ntopic_id: " + b"A" * 22,
        b"version: 0\n",
        b"version: 0\ntopic_id: " + b"A" * 21,
        b"version: 0\ntopic_id: " + b"A" * 20 + b"!!",
        b"version: 0\ntopic_id: " + b"A" * 24,
        b"\xff",
    ],
)
def test_damaged_partition_metadata_is_refused(data):
    with pytest.raises(CorruptFile):
        decode_partition_metadata(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version=0\nbroker.id=1\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=x\ndirectory.id=" + b"A" * 22,
        b"version=1\ncluster.id=x\nnode.id=y\ndirectory.id=" + b"A" * 22,
        b"version=1\ncluster.id=x\nnode.id=1\ndirectory.id=short",
        b"\xff",
    ],
)
def test_damaged_meta_properties_are_refused(data):
    with pytest.raises(CorruptFile):
        decode_meta_properties(data)
