from barnabas.protocol import record_decoding, records
from barnabas.spark_connector.rows.encoded import EncodedBatch, stamp


def encoded(count=3):
    rows = [records.Record(n, 1000 + n, b"k%d" % n, b"v%d" % n) for n in range(count)]
    return EncodedBatch("topic", 2, count, bytearray(records.encode_batch(rows)))


def test_a_stamped_batch_is_whole_and_its_producers():
    batch = encoded()
    stamp(batch, producer_id=4711, epoch=3, base_sequence=50)
    header = records.check_batch(batch.records)
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4711, 3, 50)
    assert (header.base_offset, header.record_count) == (0, 3)
    values = [r.value for r in record_decoding.iterate_records(batch.records, limit_bytes=1000)]
    assert values == [b"v0", b"v1", b"v2"]


def test_a_batch_may_be_stamped_again_for_another_producer():
    batch, other = encoded(), encoded()
    stamp(batch, 1, 1, 1)
    stamp(batch, 2**40, 32767, 2**31 - 1)
    stamp(other, 2**40, 32767, 2**31 - 1)
    assert batch.records == other.records
    records.check_batch(batch.records)
