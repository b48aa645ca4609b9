"""A broker of a cluster with an object store: what operators see of it, and what is refused."""

import contextlib
import logging
import sys
from functools import partial
from random import Random

import pytest

from barnabas.broker.cluster.start.object_store import opener_of
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.objects.blob_store import BlobRefused, BlobStoreError, BlobThrottled
from barnabas.storage.runtime.clock import monotonic, sleep
from barnabas.storage.runtime.threads import new_event, start_thread
from barnabas.testing import Cluster
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.metrics.scrape import scrape
from tests.broker.producers import Producer
from tests.storage.scripted_objects import ScriptedBlobs, clusters_with_objects
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

TOPIC = Named("t")
UPLOADED = {"barnabas.flush.object.min.bytes": "1"}
COLLECTED = {"barnabas.flush.object.min.bytes": "262144"}
METADATA = {"KAFKA_BARNABAS_METADATA": "postgresql://u@h/d"}


@contextlib.contextmanager
def one_broker():
    with clusters_with_objects() as stores, Cluster(brokers=1, config=UPLOADED) as cluster:
        cluster.create_topic(TOPIC.name)
        yield cluster, stores[0]


def test_records_are_objects_and_are_counted(world):
    with one_broker() as (cluster, objects):
        (broker,) = cluster.brokers
        with Wire(broker.address) as wire:
            for number in range(3):
                assert not wire.produce(TOPIC, batch(b"%d" % number)).error_code
        seen = scrape(broker)
        puts = seen("barnabas_object_requests_total", op="put", result="ok")
        assert puts == len(objects.bodies) >= 3
        sizes = sum(len(each) for each in objects.bodies.values())
        assert seen("barnabas_object_bytes_total", op="put") == sizes
        assert seen("barnabas_object_request_seconds_count", op="put") == puts
        names = ("uploads", "hedges_total", "store_away_seconds")
        assert [seen(f"barnabas_object_{name}") for name in names] == [0, 0, 0]


def produce_steadily(address, ended, *, waits):
    """Send 60 kB every 50 ms for 3 s, each after the last response if ``waits``."""
    data, until_s = batch(Random(0).randbytes(60_000)), monotonic() + 3
    with Wire(address) as wire:
        unanswered = 0
        while (begun_s := monotonic()) < until_s:
            wire.send(PRODUCE, produce_request(9, TOPIC, (0, data)), 9)
            unanswered += 1
            while unanswered and (waits or monotonic() >= until_s - 0.06):
                (result,) = wire.receive().responses[0].partition_responses
                assert not result.error_code
                unanswered -= 1
            sleep(max(0.0, begun_s + 0.05 - monotonic()))
    ended.append(address)


def rows_of(cluster):
    return cluster._store.index.rows.values()


@pytest.mark.parametrize(
    ("flush_ms", "waits", "share", "size_bytes", "records"),
    [
        (0, True, (0, 0.8), 0, 400),
        (250, True, (0.8, 1), 300_000, 200),
        (250, False, (0.8, 1), 2_000_000, 470),
    ],
)
def test_records_that_arrive_fast_are_collected_to_large_objects(
    world, flush_ms, waits, share, size_bytes, records
):
    """Quick commits without a window keep most flushes too small for an object.

    Producers that wait for their responses wait only until an object has the records of most.
    """
    ended = []
    config = COLLECTED | {"barnabas.flush.ms": str(flush_ms)}
    with clusters_with_objects() as stores, Cluster(brokers=1, config=config) as cluster:
        cluster.create_topic(TOPIC.name)
        run = partial(produce_steadily, cluster.brokers[0].address, ended, waits=waits)
        for number in range(8):
            start_thread(f"producer-{number}", run)
        wait_until(lambda: len(ended) == 8, pause_s=0.1)
        sizes = [len(body) for key, body in stores[0].bodies.items() if key.startswith("wal/")]
        written = sum(row.log_end_offset for row in rows_of(cluster))
        assert share[0] <= sum(sizes) / (written * 60_000) <= share[1]
        assert sum(sizes) >= size_bytes * len(sizes)
        assert written >= records


def test_producer_with_one_request_under_way_is_not_slowed(world):
    """Each request is large enough for an object, and no other joins it."""
    data, seconds = batch(Random(0).randbytes(300_000)), {}
    for flush_ms in (0, 250):
        config = COLLECTED | {"barnabas.flush.ms": str(flush_ms)}
        with (
            clusters_with_objects() as stores,
            Cluster(brokers=1, config=config, commit_ms=50, seed=1) as cluster,
        ):
            cluster.create_topic(TOPIC.name)
            with Wire(cluster.brokers[0].address) as wire:
                begun_s = monotonic()
                for _ in range(200):
                    assert not wire.produce(TOPIC, data).error_code
                seconds[flush_ms] = monotonic() - begun_s
            assert sum(key.startswith("wal/") for key in stores[0].bodies) == 200
    assert seconds[250] < 1.2 * seconds[0]


def test_transaction_of_a_cluster_without_load_waits_for_no_window(world):
    times = []
    for flush_ms in (0, 5000):
        config = {"barnabas.flush.ms": str(flush_ms)}
        with (
            clusters_with_objects(),
            Cluster(brokers=1, config=config, commit_ms=10, seed=1) as cluster,
        ):
            cluster.create_topic(TOPIC.name)
            with Producer(cluster.brokers[0], "id") as producer:
                for _ in range(3):
                    begun_s = monotonic()
                    producer.send(TOPIC.name, "value")
                    producer.commit()
                    times.append(monotonic() - begun_s)
    assert max(times[3:]) < 0.2


def test_object_store_that_fails_is_named_until_it_works_again(world, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "barnabas.broker")

    def refuse(blobs, key, body):
        raise BlobStoreError("403 Forbidden")

    def warning():
        return broker.call(broker.server.cluster_warnings).get("objects", "")

    with one_broker() as (cluster, objects):
        (broker,) = cluster.brokers
        with Wire(broker.address) as wire:
            with monkeypatch.context() as patched:
                patched.setattr(ScriptedBlobs, "put", refuse)
                wire.send(PRODUCE, produce_request(9, TOPIC, (0, batch(b"a"))), 9)
                wait_until(warning)
                assert "403 Forbidden" in warning()
                seen = scrape(broker)
                assert seen("barnabas_object_store_away_seconds") > 0
                assert seen("barnabas_object_uploads") == 1
                assert seen("barnabas_object_requests_total", op="put", result="failed") > 1
                assert not objects.bodies
            assert not wire.receive().responses[0].partition_responses[0].error_code
            assert objects.bodies
        wait_until(lambda: not warning())
    assert "the object store of the cluster does not answer: 403 Forbidden" in caplog.text
    assert "the object store of the cluster answers again" in caplog.text


def test_store_that_throttles_gets_fewer_uploads_at_once(world, monkeypatch, caplog):
    def refuse(blobs, key, body):
        raise BlobThrottled("503 SlowDown")

    with one_broker() as (cluster, _):
        (broker,) = cluster.brokers
        with Wire(broker.address) as wire:
            assert scrape(broker)("barnabas_object_uploads_max") == 4
            with monkeypatch.context() as patched:
                patched.setattr(ScriptedBlobs, "put", refuse)
                wire.send(PRODUCE, produce_request(9, TOPIC, (0, batch(b"a"))), 9)
                wait_until(lambda: scrape(broker)("barnabas_object_uploads_max") == 1)
            assert not wire.receive().responses[0].partition_responses[0].error_code
            wait_until(lambda: scrape(broker)("barnabas_object_uploads_max") == 4, pause_s=1.0)
    assert "object store throttles, fewer uploads at once uploads=2" in caplog.text


def test_slow_store_delays_no_upkeep_of_the_index(world, monkeypatch):
    """Snapshots and garbage of the index continue while a listing of objects has no response."""
    held, listed = new_event(), []

    def hang(blobs, prefix, after, most):
        listed.append(prefix)
        held.wait(3600)
        return []

    monkeypatch.setattr(ScriptedBlobs, "list", hang)
    with one_broker() as (cluster, _):
        (broker,) = cluster.brokers

        def seen():
            return scrape(broker)("barnabas_cluster_upkeep_timestamp_seconds")

        wait_until(lambda: listed)
        first = seen()
        wait_until(lambda: seen() > first + 30, seconds=120, pause_s=1.0)
        assert listed == ["seg/"]
        held.set()


def test_consumer_of_an_archived_object_gets_an_error_and_others_are_served(
    world, monkeypatch, caplog
):
    archived, read = set(), ScriptedBlobs.get_range

    def get_range(blobs, key, position, length):
        if key in archived:
            raise BlobRefused("403 Forbidden: InvalidObjectState")
        return read(blobs, key, position, length)

    monkeypatch.setattr(ScriptedBlobs, "get_range", get_range)
    other = Named("other")
    with one_broker() as (cluster, objects):
        cluster.create_topic(other.name)
        (broker,) = cluster.brokers
        with Wire(broker.address) as wire:
            assert not wire.produce(TOPIC, batch(b"a")).error_code
            before = set(objects)
            assert not wire.produce(other, batch(b"b")).error_code
        cluster.clock.advance(minutes=2)
        rows = [row for row in cluster._store.index.rows.values() if row.extents]
        wait_until(lambda: all(row.parts for row in rows), "snapshots")
        cluster.kill(0)
        cluster.restart(0)
        archived |= {key for key in before if key.startswith("wal/")}
        (broker,) = cluster.brokers
        with Wire(broker.address) as wire:
            wait_until(lambda: wire.fetch_one(other, 0).error_code == 0)
            limits = {"min_bytes": 1, "max_wait_ms": 5000}
            wait_until(lambda: wire.read(other, **limits) == [b"b"])
            began_s = monotonic()
            wait_until(lambda: wire.fetch_one(TOPIC, 0, **limits).error_code)
            assert wire.fetch_one(TOPIC, 0, **limits).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert monotonic() - began_s < 5, "no read is repeated until its timeout"
            archived.clear()
            wait_until(lambda: wire.fetch_one(TOPIC, 0, **limits).error_code == 0)
            wait_until(lambda: wire.read(TOPIC, **limits) == [b"a"])
    words = "old records unreadable, clients get KAFKA_STORAGE_ERROR key=wal/"
    assert caplog.text.count(words) == 1


def test_store_is_checked_without_uploads_too(world, monkeypatch):
    """Packed segments are put into it."""

    def refuse(blobs, name):
        raise StoreUnusable("a range of an object is not read as written")

    monkeypatch.setattr(ScriptedBlobs, "check", refuse)
    config = {"barnabas.objects.uploads.max": "0"}
    with (
        clusters_with_objects(),
        pytest.raises(StoreUnusable, match="a range of an object"),
        Cluster(brokers=1, config=config),
    ):
        pass


def test_broker_without_the_store_of_the_records_does_not_start(world):
    with one_broker() as (cluster, _):
        (broker,) = cluster.brokers
        with Wire(broker.address) as wire:
            assert not wire.produce(TOPIC, batch(b"a")).error_code
        cluster.kill(0)
        open_objects, cluster._store.open_objects = cluster._store.open_objects, None
        with pytest.raises(StoreUnusable, match=r"storage of broker 0 is not set: set"):
            cluster.restart(0)
        cluster._store.open_objects = open_objects
        cluster.restart(0)


# -------------------------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    "address",
    ["http://bucket", "s3://", "s3://user:secret@bucket", "file://relative", "s3://b?x=1", "b"],
)
def test_address_that_names_no_store_is_refused(address):
    with pytest.raises(ConfigError, match=r"barnabas\.storage"):
        load_config((), METADATA, [f"barnabas.storage={address}"])


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ([], 1_048_576),
        (["barnabas.storage=s3://bucket"], 262_144),
        (["barnabas.storage=s3://bucket", "barnabas.flush.object.min.bytes=7"], 7),
    ],
)
def test_flushes_become_objects_from_a_smaller_size_on_with_an_object_store(given, size):
    assert load_config((), METADATA, given).config.flush_object_min_bytes == size


def test_object_store_needs_a_cluster():
    with pytest.raises(ConfigError, match=r"set barnabas\.metadata, too"):
        load_config((), {}, ["barnabas.storage=s3://bucket/prefix"])


def test_secrets_are_read_from_files_and_never_shown(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("SECRET\n")
    environment = METADATA | {"KAFKA_BARNABAS_STORAGE_SECRET_KEY_FILE": str(secret)}
    config = load_config((), environment, ["barnabas.storage=s3://bucket"]).config
    assert config.storage_secret_key == "SECRET"
    assert "SECRET" not in repr(config)
    assert not any("SECRET" in str(each.value) for each in config.describe())


def test_missing_package_is_named(monkeypatch):
    config = load_config((), METADATA, ["barnabas.storage=s3://bucket"]).config
    monkeypatch.setitem(sys.modules, "obstore", None)
    name = "barnabas.storage.objects.object_blob_store"
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ConfigError, match=r"needs the package obstore: run pip install"):
        opener_of(config)
