import json

import pytest

from spark_connector import checkpoint
from spark_connector.errors import CheckpointMismatch

KAFKA = '{"orders":{"0":15,"1":7},"payments":{"0":3}}'


@pytest.fixture
def location(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "metadata").write_text('{"id":"4b0f6c3e-0000"}')
    return tmp_path


def write(location, batch_id, *sources, watermark=0):
    settings = json.dumps({"batchWatermarkMs": watermark, "conf": {"a": "b"}})
    text = "\n".join(["v1", settings, *sources])
    (location / "offsets" / str(batch_id)).write_text(text)


def test_kafka_offsets_are_where_the_batch_ends(location):
    write(location, 3, KAFKA)
    expected = {("orders", 0): 15, ("orders", 1): 7, ("payments", 0): 3}
    assert checkpoint.source_offsets(str(location), 3) == expected
    assert checkpoint.source_offsets(f"file://{location}", 3) == expected
    assert checkpoint.source_offsets(f"file:{location}", 3) == expected


def test_other_sources_have_no_offsets(location):
    write(location, 0, "17", "-", '{"logOffset":4}', '{"a":{"x":1}}', '"text"', "[1]")
    assert checkpoint.source_offsets(str(location), 0) == {}
    assert checkpoint.fingerprint(str(location), 0)


def test_two_sources_of_one_topic_have_read_what_both_have(location):
    write(location, 0, '{"t":{"0":15,"1":2}}', '{"t":{"0":10}}')
    assert checkpoint.source_offsets(str(location), 0) == {("t", 0): 10, ("t", 1): 2}


def test_the_fingerprint_is_of_the_ends_alone(location):
    write(location, 0, KAFKA, watermark=1)
    write(location, 1, KAFKA, watermark=2)
    write(location, 2, KAFKA.replace("15", "16"))
    prints = [checkpoint.fingerprint(str(location), batch_id) for batch_id in range(3)]
    assert prints[0] == prints[1] != prints[2]


def test_the_querys_id(location):
    assert checkpoint.query_id(str(location)) == "4b0f6c3e-0000"
    assert checkpoint.query_id(None) is None


def test_a_batch_that_is_not_there_means_another_checkpoint(location):
    with pytest.raises(CheckpointMismatch, match=r"has no file offsets/7: give the sink"):
        checkpoint.fingerprint(str(location), 7)


def test_what_cannot_be_reached_is_unknown(tmp_path):
    with pytest.warns(RuntimeWarning, match="no such local directory"):
        end = checkpoint.batch_end(str(tmp_path / "elsewhere"), 0)
    assert end == (checkpoint.UNKNOWN, {})
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert checkpoint.batch_end("dbfs:/checkpoints/a", 0) == (checkpoint.UNKNOWN, {})
    assert checkpoint.batch_end(None, 0) == (checkpoint.UNKNOWN, {})


def test_a_uri_is_read_through_pyarrow(location, monkeypatch):
    monkeypatch.setattr(checkpoint, "local_path", lambda location: None)
    write(location, 1, KAFKA)
    assert checkpoint.source_offsets(f"file://{location}", 1)["payments", 0] == 3
    with pytest.raises(CheckpointMismatch, match="offsets/2"):
        checkpoint.source_offsets(f"file://{location}", 2)
