"""A start that is refused changes nothing, and none cuts off what Apache Kafka has acknowledged.

Of Kafka itself: tests/interop/test_adoption.py.
"""

import logging
import shutil

import pytest

from barnabas.broker.config.types import ConfigError
from barnabas.storage.errors import (
    NotStoppedByKafka,
    StrayDirectory,
    TakeOverRefused,
    UsedByKafkaSince,
)
from barnabas.storage.metastore.interface import IdentityMismatch
from barnabas.storage.metastore.sqlite import FILE_NAME, SqliteMetaStore
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.data_plane import NOW_MS
from tests.storage.stores import batch
from tests.worlds import world

__all__ = ["world"]

MARK = ".kafka_cleanshutdown"
STEM = f"{0:020}"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The directory of a broker that was stopped, with a record in each of three partitions."""
    data = tmp_path_factory.mktemp("written") / "data"
    with Broker(storage=data, config={"node.id": "1"}) as broker:
        broker.create_topic("orders", 2)
        broker.create_topic("prices", 1)
        for topic, index in (("orders", 0), ("orders", 1), ("prices", 0)):
            log = broker.server.catalogue.topics[topic].partitions[index].log
            value = f"{topic} {index}".encode()
            broker.call(
                lambda log=log, value=value: log.append(batch(timestamp=NOW_MS, value=value))
            )
    return data


@pytest.fixture
def ours(written, tmp_path):
    """A copy of that directory."""
    return shutil.copytree(written, tmp_path / "data")


@pytest.fixture
def kafkas(ours):
    """The same as Apache Kafka leaves it after a clean stop."""
    for path in ours.glob("barnabas-*"):
        path.unlink()
    (ours / MARK).write_text('{"version":0,"brokerEpoch":7}')
    return ours


def tree(directory):
    return {
        str(path.relative_to(directory)): path.is_file() and path.read_bytes()
        for path in directory.rglob("*")
    }


def broker_in(directory, **config):
    settings = {"node.id": "1"} | {key.replace("_", "."): value for key, value in config.items()}
    return Broker(storage=directory, config=settings)


def refuse(directory, error, match, **config):
    """Assert that a start refuses a directory and leaves every byte of it."""
    before = tree(directory)
    with pytest.raises(error, match=match), broker_in(directory, **config):
        pass
    assert tree(directory) == before


def values(directory, *topics):
    with broker_in(directory) as broker:
        return sorted(record.value for topic in topics for record in broker.records(topic).result)


ALL = [b"orders 0", b"orders 1", b"prices 0"]


def test_kafka_directory_is_taken_over(kafkas):
    assert values(kafkas, "orders", "prices") == ALL
    assert not (kafkas / MARK).exists()


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"node_id": "2"}, "is of node 1, the configuration says node.id=2"),
        ({"cluster_id": "oKlTPFF2TkSvFtAbxy0nMg"}, "the configuration says oKlTPFF2TkSvFtAbxy0nMg"),
    ],
)
def test_take_over_with_a_wrong_identity_changes_nothing(kafkas, config, match):
    refuse(kafkas, IdentityMismatch, match, **config)
    assert values(kafkas, "orders", "prices") == ALL


def test_take_over_without_all_partitions_changes_nothing(kafkas):
    (kafkas / "orders-0").rename(kafkas.parent / "orders-0")
    refuse(kafkas, TakeOverRefused, rf"unchanged: {kafkas}/orders .*only the partitions \[1\]")
    (kafkas.parent / "orders-0").rename(kafkas / "orders-0")
    assert values(kafkas, "orders", "prices") == ALL


def test_take_over_with_a_stray_partition_changes_nothing(kafkas):
    (kafkas / "strays-0").mkdir()
    refuse(kafkas, TakeOverRefused, f"unchanged: {kafkas}/strays-0: no topic owns it")


def test_take_over_with_a_damaged_segment_changes_nothing(kafkas):
    path = kafkas / "prices-0" / f"{STEM}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    refuse(kafkas, TakeOverRefused, f"unchanged: {path} is corrupt at byte 0: the checksum")


def test_take_over_with_settings_of_a_broker_that_are_wrong_changes_nothing(kafkas):
    refuse(kafkas, ConfigError, "retention", log_retention_ms="-7")


def test_take_over_that_was_cut_short_begins_again_without_its_metadata(kafkas):
    """Kafka may have deleted and created topics of the same names since."""
    store = SqliteMetaStore.open(
        str(kafkas / FILE_NAME), node_id=1, new_cluster_id="oKlTPFF2TkSvFtAbxy0nMg"
    )
    store.create_topic("orders", bytes(16), 5, {"retention.ms": "1"})
    store.create_topic("gone", bytes([7] * 16), 1, {})
    store.close()
    with broker_in(kafkas) as broker:
        topics = broker.server.catalogue.topics
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {
            "orders": 2,
            "prices": 1,
        }
    assert values(kafkas, "orders", "prices") == ALL


def test_directories_that_kafka_put_aside_are_passed_over_and_logged(kafkas, caplog):
    stray, future = (f"prices-0.{'0' * 32}-{suffix}" for suffix in ("stray", "future"))
    for name in (stray, future):
        shutil.copytree(kafkas / "prices-0", kafkas / name)
    (kafkas / "lost+found").mkdir()
    kept = tree(kafkas / stray)
    with caplog.at_level(logging.INFO, "barnabas.broker.server"):
        assert values(kafkas, "orders", "prices") == ALL
    passed_over = [
        (record.levelname, record.message)
        for record in caplog.records
        if record.message.startswith("directories passed over")
    ]
    assert passed_over == [
        (
            "WARNING",
            f'directories passed over reason="Kafka has put them aside" names={future},{stray}',
        ),
        ("INFO", 'directories passed over reason="no partitions" names=lost+found'),
    ]
    assert tree(kafkas / stray) == tree(kafkas / future) == kept


def test_directory_that_kafka_has_used_since_is_refused(ours, monkeypatch):
    (ours / MARK).write_text("{}")
    refuse(ours, UsedByKafkaSince, f"{ours}: Apache Kafka has run in this data directory after")
    checked = Shell(monkeypatch, "")("check", "-d", ours, server=False)
    assert f"{ours}: Apache Kafka has run in this data directory after" in checked.error
    (ours / MARK).unlink()
    assert values(ours, "orders", "prices") == ALL


def test_directory_in_which_kafka_was_killed_since_is_refused(kafkas, monkeypatch, tmp_path):
    """Kafka has left no mark, but its metadata log grows in every run."""
    metadata_log = kafkas / "__cluster_metadata-0" / f"{STEM}.log"
    metadata_log.parent.mkdir()
    metadata_log.touch()
    assert values(kafkas, "orders", "prices") == ALL
    shell = Shell(monkeypatch, "")
    assert shell("backup", tmp_path / "copy", "-d", kafkas, server=False).exit_code == 0
    assert shell("restore", tmp_path / "copy", tmp_path / "new", server=False).exit_code == 0
    assert values(tmp_path / "new", "orders", "prices") == ALL
    metadata_log.write_bytes(b"a record of Kafka's controller")
    refuse(kafkas, UsedByKafkaSince, "__cluster_metadata-0 is not as it was taken over")
    shutil.rmtree(metadata_log.parent)
    assert values(kafkas, "orders", "prices") == ALL


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_directory_that_kafka_has_not_closed_is_refused(kafkas, name):
    (kafkas / MARK).unlink()
    (kafkas / name).write_text("0\n0\n")
    refuse(kafkas, NotStoppedByKafka, f"{MARK} is missing; start Kafka there, stop it with SIGTERM")


def test_directory_without_its_metadata_is_refused_before_new_ones_are_made(ours):
    for path in ours.glob(f"{FILE_NAME}*"):
        path.unlink()
    refuse(ours, StrayDirectory, f"{ours}/orders-0: no topic owns it")
