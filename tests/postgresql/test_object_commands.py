"""``barnabas check --cluster`` and ``barnabas objects sweep`` over PostgreSQL and S3 servers."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import shutil
from uuid import uuid4

import pytest
from kafka import KafkaProducer

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.objects.guard import GUARD_KEY
from barnabas.storage.objects.object_rows import Requests
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.testing import Broker
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.postgresql_servers import Server, own
from tests.counterparts.scripted_s3 import Fault, Kind, ScriptedS3
from tests.postgresql.brokers import Member, running
from tests.postgresql.object_stores import (
    BUCKET,
    create_topics,
    read,
    settings_of,
    succeed,
    write,
)
from tests.real.cli.command import barnabas
from tests.waiting import wait_until

RECORDS = 3


def run(*arguments):
    """Run a command whose files are all named by absolute paths."""
    return barnabas(*arguments, cwd="/")


@pytest.fixture(scope="module")
def store():
    with ScriptedS3() as scripted:
        scripted.create_bucket(BUCKET)
        yield scripted


@pytest.fixture(scope="module")
def settings(store, tmp_path_factory):
    """The configuration file of a cluster that has written some objects, and ended."""
    directory = tmp_path_factory.mktemp("cluster")
    with Server() as server:
        member = Member(directory, server.url, **settings_of(store))
        with running([member]):
            create_topics(member, "orders")
            write(member, "orders", RECORDS)
        found = {"barnabas.metadata": server.url, **settings_of(store)}
        path = directory / "check.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in found.items()))
        yield str(path)


@pytest.fixture(autouse=True)
def kept(store):
    """The objects are as before after each test."""
    objects = dict(store.bucket.objects)
    yield
    store.bucket.objects = objects


def records_of(store):
    return sorted(key for key in store.bucket.objects if "/wal/" in key)


def checked(settings):
    """Return the exit code, the document and the reports of a check."""
    done = run("check", "--cluster", settings, "--format", "json")
    return done.returncode, json.loads(done.stdout), done.stderr.splitlines()


def test_cluster_whose_objects_are_all_there_is_healthy(store, settings):
    code, found, problems = checked(settings)
    assert (code, found["verdict"], problems) == (0, "healthy", [])
    assert found["objects"] == len(records_of(store)) == RECORDS
    assert found["bytes"] == sum(len(store.bucket.objects[key]) for key in records_of(store))


def test_missing_and_short_objects_are_named_with_their_offsets(store, settings):
    missing, short, _ = records_of(store)
    del store.bucket.objects[missing]
    size = len(store.bucket.objects[short])
    store.bucket.objects[short] = store.bucket.objects[short][:-1]
    code, found, problems = checked(settings)
    assert (code, found["verdict"]) == (1, "damaged")
    prefix = f"prefix/{found['cluster_id']}/"
    assert [(each["key"], each["problem"]) for each in found["problems"]] == [
        (missing.removeprefix(prefix), "is missing"),
        (short.removeprefix(prefix), f"has {size - 1:,} bytes, not {size:,}"),
    ]
    ranges = [{"topic": "orders", "partition": 0, "first_offset": 0, "last_offset": 0}]
    assert found["problems"][0]["ranges"] == ranges
    assert "is missing: orders-0 offsets 0 to 0" in problems[0]


def test_object_that_no_row_names_is_counted_and_no_problem(store, settings):
    _, before, _ = checked(settings)
    store.bucket.put(f"prefix/{before['cluster_id']}/wal/1/0-00000000000000ff-1", b"orphan")
    code, found, _ = checked(settings)
    assert code == 0
    assert found["unnamed_objects"] == before["unnamed_objects"] + 1
    assert found["unnamed_bytes"] == before["unnamed_bytes"] + len(b"orphan")


def test_sweep_deletes_the_objects_of_another_cluster_and_no_others(store, settings):
    others = dict(store.bucket.objects)
    gone = {f"prefix/gone/wal/1/0-{number:016x}-1": b"12345" for number in range(1005)}
    for key, content in gone.items():
        store.bucket.put(key, content)
    words = "1,005 objects with 5,025 bytes"
    tried = run("objects", "sweep", "--cluster", "gone", settings, "--dry-run")
    assert (tried.returncode, tried.stdout) == (0, f"cluster gone: {words} would be deleted\n")
    assert set(store.bucket.objects) == {*others, *gone}
    refused = run("objects", "sweep", "--cluster", "gone", settings)
    assert (refused.returncode, "give --yes" in refused.stderr) == (2, True)
    swept = run("objects", "sweep", "--cluster", "gone", settings, "--yes")
    assert (swept.returncode, swept.stdout) == (0, f"cluster gone: {words} deleted\n")
    assert store.bucket.objects == others


def test_sweep_does_not_touch_the_configured_cluster(store, settings):
    _, found, _ = checked(settings)
    refused = run("objects", "sweep", "--cluster", found["cluster_id"], settings, "--yes")
    assert refused.returncode == 2
    assert f"cluster {found['cluster_id']}: it is the cluster of" in refused.stderr
    assert len(records_of(store)) == RECORDS


def test_store_that_does_not_answer_is_reported(store, settings):
    store.bucket.exists = False
    done = run("check", "--cluster", settings)
    store.bucket.exists = True
    assert done.returncode == 1
    assert "s3://bucket/prefix: Generic S3 error" in done.stderr
    assert store.secret_key not in done.stderr


def test_directory_is_imported_into_objects_and_exported_from_them(tmp_path):
    values = [b"%d " % number + bytes(64 * 1024) for number in range(20)]
    source, exported = tmp_path / "source", tmp_path / "exported"
    with Broker(storage=source) as broker:
        broker.create_topic("orders")
        with contextlib.closing(
            KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        ) as producer:
            for each in values:
                producer.send("orders", each)
    with ScriptedS3() as store, Server() as server:
        store.create_bucket(BUCKET)
        file = tmp_path / "cluster.properties"
        found = {"barnabas.metadata": server.url, **settings_of(store)}
        file.write_text("".join(f"{key}={value}\n" for key, value in found.items()))
        store.script.append(Fault("PUT", Kind.ERROR, key="seg/", times=2))
        done = run("cluster", "import", source, file)
        assert (done.returncode, done.stderr) == (0, "")
        found = [each for key, each in store.bucket.objects.items() if key.endswith(".log")]
        assert sum(map(len, found)) > sum(map(len, values))
        assert records_of(store) == [], "nothing is left to be packed"
        with (
            contextlib.closing(PostgreSqlBase(server.url, new_cluster_id="unused")) as base,
            pytest.raises(StoreUnusable, match="records of the cluster are in the object store"),
        ):
            base.cluster_index().register(uuid4(), 9, "", 1000)
        member = Member(tmp_path / "member", server.url, **settings_of(store))
        with running([member]):
            assert read(member, "orders") == values
            member.terminate()  # A dead one would count until the end of its lease.
        done = run("cluster", "export", exported, file)
        assert (done.returncode, done.stderr) == (0, "")
    with Broker(storage=exported) as broker:
        assert [each.value for each in broker.records("orders").result] == values


def test_database_of_an_earlier_moment_is_refused_until_the_loss_is_accepted(store, tmp_path):
    """The copy lacks the last records; its sessions would have IDs that were used before."""
    with Server() as server:
        store.bucket.objects.clear()
        member = Member(tmp_path, server.url, **settings_of(store))
        with running([member]):
            create_topics(member, "orders")
            written = write(member, "orders", 1)
            member.kill()
            server.stop()
            shutil.copytree(server.data, tmp_path / "backup")
            server.start()
            before = guards(store)
            succeed(member)
            write(member, "orders", 2)
            wait_until(lambda: guards(store) > before)
            member.kill()
        lost = session_of(store)
        server.stop()
        shutil.rmtree(server.data)
        shutil.copytree(tmp_path / "backup", server.data)
        own(server.data)
        server.start()
        with pytest.raises(BrokerDied, match="restored to an earlier moment"):
            member.start()
        path = tmp_path / "cluster.properties"
        found = {"barnabas.metadata": server.url, **settings_of(store)}
        path.write_text("".join(f"{key}={value}\n" for key, value in found.items()))
        accepted = run("cluster", "reopen", "--restored", str(path))
        assert accepted.returncode == 0, accepted.stderr
        with running([member]):
            assert read(member, "orders") == written
            wait_until(lambda: session_of(store) > lost)


def guards(store):
    return store.count("PUT", GUARD_KEY)


def session_of(store):
    """Return the session in the guard."""
    (guard,) = [each for key, each in store.bucket.objects.items() if key.endswith(GUARD_KEY)]
    return json.loads(guard)["session"]


def test_cost_names_requests_and_stores(store, settings):
    """Requests are added once a minute: it varies whether those of these brokers are known."""
    prices = [f"--price={each}=0" for each in ("put", "get", "list")]
    prices.append("--price=objects=1000000")
    done = run("cluster", "cost", settings, "--format", "json", *prices)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    lines = {each["name"]: each for each in document["lines"]}
    sizes = [len(store.bucket.objects[key]) for key in records_of(store)]
    held = lines["objects of flushes"]
    assert (held["number"], held["bytes"]) == (len(sizes), sum(sizes))
    assert document["usd_a_month"] == pytest.approx(sum(sizes) / 1000)
    assert lines["PostgreSQL's database"]["bytes"] > 1_000_000
    text = run("cluster", "cost", settings).stdout
    assert "objects of flushes" in text
    assert "USD a month at these prices" in text


def test_requests_of_all_brokers_are_added_by_the_hour(store, settings):
    text = pathlib.Path(settings).read_text(encoding="utf-8")
    address = re.search(r"^barnabas\.metadata=(.*)$", text, re.MULTILINE)[1]
    with (
        contextlib.closing(PostgreSqlBase(address, new_cluster_id="unused")) as base,
        contextlib.closing(base.object_rows()) as rows,
    ):
        before = rows.usage(1).requests.get("put", Requests(0, 0))
        rows.add_requests({"put": Requests(3, 100), "get": Requests(1, 5)})
        rows.add_requests({"put": Requests(2, 1)})
        usage = rows.usage(24)
    assert usage.requests["put"] == (before.calls + 5, before.size_bytes + 101)
    assert usage.requests["get"][0] >= 1
    assert 0 < usage.seconds <= 24 * 3600
