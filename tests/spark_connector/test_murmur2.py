import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_pythons

from barnabas.spark_connector.rows.murmur2 import murmur2

KEYS = st.lists(st.binary(max_size=70), max_size=40)


@given(KEYS, st.integers(0, 5), st.integers(0, 5))
def test_the_hashes_are_kafkas(keys, cut_head, cut_tail):
    whole = pa.array(keys, pa.binary())
    array = whole.slice(cut_head, max(0, len(whole) - cut_head - cut_tail))
    assert murmur2(array).tolist() == [kafka_pythons(key) for key in array.to_pylist()]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        # What Kafka's own tests say of its Java implementation.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hashes_are_those_of_the_java_client(key, expected):
    assert murmur2(pa.array([key])).astype(np.int32).tolist() == [expected]


def test_bytes_that_lie_under_a_null_do_not_count():
    offsets = pa.py_buffer(np.array([0, 3, 7], dtype=np.int32))
    bits = pa.py_buffer(b"\x02")
    keys = pa.Array.from_buffers(pa.binary(), 2, [bits, offsets, pa.py_buffer(b"abckeys")])
    assert keys.to_pylist() == [None, b"keys"]
    assert murmur2(keys).tolist() == [kafka_pythons(b""), kafka_pythons(b"keys")]
