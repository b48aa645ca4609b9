import json

import pytest

from barnabas.spark_connector.checkpoint import checkpoint, checkpoint_files
from barnabas.spark_connector.errors import CheckpointMismatch, CheckpointUnusable

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
    assert checkpoint.batch_end(str(location), 3).offsets == expected
    assert checkpoint.batch_end(f"file://{location}", 3).offsets == expected
    assert checkpoint.batch_end(f"file:{location}", 3).offsets == expected


def test_other_sources_have_no_offsets(location):
    write(location, 0, "17", "-", '{"logOffset":4}', '{"a":{"x":1}}', '"text"', "[1]")
    assert checkpoint.batch_end(str(location), 0).offsets == {}
    assert checkpoint.fingerprint(str(location), 0)


def test_two_sources_of_one_topic_have_read_what_both_have(location):
    write(location, 0, '{"t":{"0":15,"1":2}}', '{"t":{"0":10}}')
    assert checkpoint.batch_end(str(location), 0).offsets == {("t", 0): 10, ("t", 1): 2}


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
        checkpoint.batch_end(str(location), 7)
    assert checkpoint.fingerprint(str(location), 7) is None


def test_end_of_an_unreachable_checkpoint_is_unknown(tmp_path):
    with pytest.warns(RuntimeWarning, match="no such local directory"):
        end = checkpoint.batch_end(str(tmp_path / "elsewhere"), 0)
    assert end == (checkpoint.UNKNOWN, {})
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert checkpoint.batch_end("dbfs:/checkpoints/a", 0) == (checkpoint.UNKNOWN, {})
    assert checkpoint.batch_end(None, 0) == (checkpoint.UNKNOWN, {})


def test_a_uri_is_read_through_pyarrow(location, monkeypatch):
    monkeypatch.setattr(checkpoint_files, "local_path", lambda location: None)
    write(location, 1, KAFKA)
    assert checkpoint.batch_end(f"file://{location}", 1).offsets["payments", 0] == 3
    with pytest.raises(CheckpointMismatch, match="offsets/2"):
        checkpoint.batch_end(f"file://{location}", 2)
    check_files(f"file://{location}", location)
    assert checkpoint.next_batch(f"file://{location}") == 1


def check_files(uri, location):
    """Check reads of existing and missing files, and the incarnations that sinks record."""
    assert checkpoint.incarnation(uri) is None
    for text in ("one", "another"):
        checkpoint.note_incarnation(uri, text)
        assert checkpoint.incarnation(uri) == text
    assert not list(location.glob(".*"))
    assert checkpoint.last_end(uri) == checkpoint.batch_end(uri, 1)
    assert not checkpoint.is_finished(uri, 1)


def test_unwritable_incarnation_stops_nothing(location):
    (location / checkpoint.INCARNATION).mkdir()
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        checkpoint.note_incarnation(str(location), "one")
    assert not list(location.glob(".*"))


def test_where_a_query_begins(location):
    uri = str(location)
    assert checkpoint.next_batch(uri) == 0
    assert checkpoint.last_end(uri) == (checkpoint.UNKNOWN, {})
    write(location, 0, KAFKA)
    write(location, 1, KAFKA)
    (location / "offsets" / ".2.crc").touch()
    check_files(uri, location)
    assert checkpoint.next_batch(uri) == 1
    (location / "commits").mkdir()
    (location / "commits" / "1").touch()
    assert checkpoint.is_finished(uri, 1)
    assert checkpoint.next_batch(uri) == 2
    assert checkpoint.next_batch(None) is None
    assert checkpoint.batch_end(uri, 1).topics == ["orders", "payments"]


def test_state_of_a_query_is_seen_in_its_checkpoint(location):
    assert not checkpoint.has_state(str(location))
    (location / "state").mkdir()
    assert not checkpoint.has_state(str(location))
    (location / "state" / "0").mkdir()
    assert checkpoint.has_state(str(location))
    assert checkpoint.has_state(None), "unknown: an evaluation too many is harmless"


@pytest.fixture
def _in_the_driver(monkeypatch):
    """Make ``files_at`` treat a missing local directory as local, as in Spark's driver."""
    monkeypatch.setattr(
        checkpoint, "files_at", lambda location, _store=None: checkpoint_files.LocalFiles(location)
    )


@pytest.mark.usefixtures("_in_the_driver")
def test_a_checkpoint_that_can_be_used_is_made_and_otherwise_left_alone(tmp_path):
    location = tmp_path / "new" / "checkpoint"
    checkpoint.check_usable(str(location))
    assert list(location.iterdir()) == []
    (location / "metadata").write_text('{"id":"x"}')
    checkpoint.check_usable(str(location))
    assert [each.name for each in location.iterdir()] == ["metadata"]


@pytest.mark.usefixtures("_in_the_driver")
def test_a_checkpoint_that_cannot_be_used_says_why(tmp_path):
    (tmp_path / "file").touch()
    for location, why in ((tmp_path / "file" / "a", "Not a directory"), ("/proc/a", "No such")):
        says = rf"checkpoint {location} cannot be used \({why}"
        with pytest.raises(CheckpointUnusable, match=says):
            checkpoint.check_usable(str(location))


@pytest.mark.usefixtures("_in_the_driver")
@pytest.mark.parametrize("text", ["garbage", "5", "{}", "[]"])
def test_a_checkpoint_that_does_not_say_whose_it_is(tmp_path, text):
    (tmp_path / "metadata").write_text(text)
    for look in (checkpoint.query_id, checkpoint.check_usable):
        with pytest.raises(CheckpointMismatch, match="its file metadata cannot be read"):
            look(str(tmp_path))
