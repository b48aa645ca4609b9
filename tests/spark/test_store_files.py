"""A checkpoint's files on an S3 server, as the commit worker reaches them: without Spark's JVM."""

from __future__ import annotations

import json
import pickle
import socket
import warnings
from collections.abc import Iterator

import pyarrow.fs
import pytest

from barnabas.spark_connector.checkpoint import checkpoint, object_store, store_file_systems
from barnabas.spark_connector.checkpoint.checkpoint_files import files_at
from barnabas.spark_connector.errors import CheckpointMismatch, CheckpointUnusable
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.settings.store_options import StoreOptions
from barnabas.spark_connector.sinks.starting import find_refusal
from tests.counterparts.s3 import REGION, S3Server

BUCKET = "checkpoints"
KAFKA = '{"orders":{"0":15,"1":7}}'
NO_CREDENTIALS = {
    **dict.fromkeys(object_store.CREDENTIALS[object_store.S3]),
    "AWS_SECRET_ACCESS_KEY": None,
    "HOME": "/nonexistent",
}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with S3Server() as running:
        running.create_bucket(BUCKET)
        yield running


@pytest.fixture(autouse=True)
def _in_a_new_process(monkeypatch):
    monkeypatch.setattr(object_store, "_opened", {})
    monkeypatch.setattr(object_store, "_left_out", {})
    # Its pauses between attempts are seconds.
    monkeypatch.setattr(store_file_systems, "_ATTEMPTS_MAX", 1)
    # Otherwise Amazon's SDK looks for a server beside the machine.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def _without_credentials(monkeypatch):
    for name, value in NO_CREDENTIALS.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)


def store(s3, **changes):
    given = {
        "endpoint": s3.url,
        "region": REGION,
        "access_key": s3.access_key,
        "secret_key": s3.secret_key,
        **changes,
    }
    return StoreOptions(**given)


def plan(s3, name, batch_id, *sources):
    text = "\n".join(["v1", json.dumps({"batchWatermarkMs": 0}), *sources])
    s3.put(BUCKET, f"{name}/offsets/{batch_id}", text.encode())


@pytest.mark.parametrize("scheme", ["s3a", "s3", "s3n", "S3A"])
def test_batch_end_is_read_by_each_name_of_the_store(s3, scheme):
    name = f"end-{scheme}"
    plan(s3, name, 3, KAFKA)
    end = checkpoint.batch_end(f"{scheme}://{BUCKET}/{name}", 3, store(s3))
    assert end.offsets == {("orders", 0): 15, ("orders", 1): 7}
    assert len(end.fingerprint) == 64
    with pytest.raises(CheckpointMismatch, match=r"has no file offsets/4: give the sink"):
        checkpoint.batch_end(f"{scheme}://{BUCKET}/{name}/", 4, store(s3))


def test_query_and_next_batch_are_those_of_the_checkpoint(s3):
    location, options = f"s3a://{BUCKET}/next", store(s3)
    assert checkpoint.query_id(location, options) is None
    assert checkpoint.next_batch(location, options) == 0
    assert checkpoint.last_end(location, options) == (checkpoint.UNKNOWN, {})
    s3.put(BUCKET, "next/metadata", b'{"id":"4b0f6c3e-0000"}')
    s3.put(BUCKET, "next/offsets/", b"")  # Hadoop's mark of a directory.
    plan(s3, "next", 0, KAFKA)
    plan(s3, "next", 1, KAFKA)
    assert checkpoint.query_id(location, options) == "4b0f6c3e-0000"
    assert checkpoint.next_batch(location, options) == 1
    assert not checkpoint.is_finished(location, 1, options)
    s3.put(BUCKET, "next/commits/1", b"v1\n{}")
    assert checkpoint.is_finished(location, 1, options)
    assert checkpoint.next_batch(location, options) == 2
    assert checkpoint.last_end(location, options) == checkpoint.batch_end(location, 1, options)


def test_note_is_one_object_and_nothing_beside_it(s3):
    location, options = f"s3a://{BUCKET}//notes//one", store(s3)
    assert checkpoint.incarnation(location, options) is None
    for text in ("one", "another"):
        checkpoint.note_incarnation(location, text, options)
        assert checkpoint.incarnation(location, options) == text
    assert s3.objects(BUCKET, "notes/") == {f"notes/one/{checkpoint.INCARNATION}": b"another"}
    with s3.client() as client:
        assert "Uploads" not in client.list_multipart_uploads(Bucket=BUCKET)


def test_names_with_percent_signs_and_spaces_are_taken_as_they_are(s3):
    """Hadoop does so, too."""
    location, options = f"s3a://{BUCKET}/a b%20c?d#e", store(s3)
    checkpoint.note_incarnation(location, "noted", options)
    assert list(s3.objects(BUCKET, "a b%20c?d#e/")) == [f"a b%20c?d#e/{checkpoint.INCARNATION}"]
    assert checkpoint.incarnation(location, options) == "noted"


def test_usable_checkpoint_is_left_as_it_was(s3):
    files = files_at(f"s3a://{BUCKET}/probed", store(s3))
    assert files is not None
    files.replace("probe", b"")
    files.remove("probe")
    assert s3.objects(BUCKET, "probed/") == {}


def test_environment_has_what_options_do_not_say(s3, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    plan(s3, "environment", 0, KAFKA)
    end = checkpoint.batch_end(f"s3a://{BUCKET}/environment", 0)
    assert end.offsets == {("orders", 0): 15, ("orders", 1): 7}


# ------------------------------------------------------------------------------- what goes wrong


def silent_server():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    return listener


@pytest.mark.parametrize(
    ("changes", "reason", "action"),
    [
        ({"secret_key": "wrong"}, "access denied", "checkpoint.accessKey and checkpoint.secretKey"),
        ({"access_key": "AKIAnobody"}, "access denied", "AWS_\\* variables"),
        ({"endpoint": "http://127.0.0.1:1"}, "the store did not respond", "checkpoint.endpoint"),
    ],
    ids=["secret", "key", "endpoint"],
)
def test_store_that_fails_is_one_sentence(s3, changes, reason, action):
    location = f"s3a://{BUCKET}/wrong"
    expected = rf"^The checkpoint {location} cannot be used from Python on \S+ \({reason}.*{action}"
    for _again in range(2):
        with pytest.raises(CheckpointUnusable, match=expected) as caught:
            checkpoint.batch_end(location, 0, store(s3, **changes))
        text = str(caught.value)
        assert "\n" not in text
        assert s3.secret_key not in text
        assert "Request ID" not in text


def test_missing_bucket_is_named(s3):
    with pytest.raises(CheckpointUnusable, match="the bucket nowhere does not exist there"):
        checkpoint.query_id("s3a://nowhere/checkpoint", store(s3))
    with pytest.raises(CheckpointUnusable, match="names no bucket"):
        checkpoint.query_id("s3a:///checkpoint", store(s3))


def test_store_without_a_response_is_given_up_in_time(s3, monkeypatch):
    monkeypatch.setattr(object_store, "CALL_TIMEOUT_S", 0.2)
    with silent_server() as listener:
        listener.listen()
        options = store(s3, endpoint=f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(CheckpointUnusable, match=r"did not respond: no response in 0.2 sec"):
            checkpoint.query_id(f"s3a://{BUCKET}/silent", options)


def test_planned_batch_is_refused_and_not_the_writer(s3):
    """A refusal is for the tasks to raise: see `data_source.py`."""
    given = {
        "kafka.bootstrap.servers": "localhost:9",
        "sinkId": "refused",
        "checkpointLocation": "s3a://nowhere/checkpoint",
        **s3.sink_options(),
    }
    refusal = find_refusal(SinkOptions.parse(given))
    assert isinstance(refusal, CheckpointUnusable)
    assert "the bucket nowhere does not exist" in str(refusal)


def test_note_that_cannot_be_written_stops_nothing(s3):
    """The user may only read."""
    location = f"s3a://{BUCKET}/read-only"
    options = store(s3, access_key=s3.reader.access_key, secret_key=s3.reader.secret_key)
    plan(s3, "read-only", 0, KAFKA)
    assert checkpoint.batch_end(location, 0, options).fingerprint
    with pytest.warns(RuntimeWarning, match=r"access denied.*\. Topics that are made again"):
        checkpoint.note_incarnation(location, "one", options)
    assert list(s3.objects(BUCKET, "read-only/")) == ["read-only/offsets/0"]


@pytest.mark.usefixtures("_without_credentials")
def test_store_whose_credentials_only_hadoop_may_have_is_a_warning_once(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    location = f"s3a://{BUCKET}/unknown"
    given = {"kafka.bootstrap.servers": "localhost:9", "sinkId": "x"}
    expected = "Hadoop settings: set the options checkpoint.accessKey .* foreachBatch"
    with warnings.catch_warnings():
        # The process that plans leaves it to the one that commits.
        warnings.simplefilter("error")
        assert find_refusal(SinkOptions.parse({**given, "checkpointLocation": location})) is None
    with pytest.warns(RuntimeWarning, match=expected) as warned:
        assert checkpoint.batch_end(location, 0) == (checkpoint.UNKNOWN, {})
    assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoint.batch_end(location, 1) == (checkpoint.UNKNOWN, {})
        assert checkpoint.next_batch(location) is None


def test_pyarrow_without_the_store_is_one_sentence(s3, monkeypatch):
    monkeypatch.delattr(pyarrow.fs, "S3FileSystem")
    with pytest.raises(CheckpointUnusable, match=r"S3FileSystem"):
        checkpoint.batch_end(f"s3a://{BUCKET}/without", 0, store(s3))


@pytest.mark.usefixtures("_without_credentials")
def test_store_is_tried_again_after_a_while(s3, monkeypatch):
    """Credentials of a machine are not in the environment: the first failure may have passed."""
    location, now_s = f"s3a://{BUCKET}/later", [1000.0]
    plan(s3, "later", 0, KAFKA)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.warns(RuntimeWarning, match="did not respond"):
        assert object_store.object_files(location, None, now=lambda: now_s[0]) is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    assert object_store.object_files(location, None, now=lambda: now_s[0]) is None
    now_s[0] += object_store.RETRY_AFTER_S
    files = object_store.object_files(location, None, now=lambda: now_s[0])
    assert files is not None
    assert files.exists("offsets/0")


def test_store_that_was_reached_once_is_never_left_out(s3):
    """The failure ends the query, which starts again at the same batch."""
    location, options = f"s3a://{BUCKET}/reached", store(s3)
    plan(s3, "reached", 0, KAFKA)
    assert checkpoint.batch_end(location, 0, options).fingerprint
    files = files_at(location, options)
    files._files = store_file_systems.file_system(location, store(s3, secret_key="wrong"))
    with pytest.raises(CheckpointUnusable, match="access denied"):
        checkpoint.batch_end(location, 0, options)


def test_options_with_a_store_travel_and_compare(s3):
    given = {
        "kafka.bootstrap.servers": "localhost:9",
        "sinkId": "x",
        "checkpointLocation": f"s3a://{BUCKET}/x",
        **s3.sink_options(),
    }
    options = SinkOptions.parse(given)
    assert pickle.loads(pickle.dumps(options)) == options
    assert options.checkpoint_store == store(s3)
    assert s3.secret_key not in repr(options)
    assert s3.access_key not in repr(options)
    assert options != SinkOptions.parse({**given, "checkpoint.secretKey": "another"})
