"""A data directory belongs to one cluster and one node, and says so in Kafka's own file."""

from dataclasses import replace

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.metadata.identity import META_PROPERTIES, read_properties, settle_identity
from barnabas.storage.errors import Corrupt
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.metastore.interface import IdentityMismatch
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.testing import Broker
from tests.worlds import world

__all__ = ["world"]


@pytest.fixture
def files():
    return LocalFileSystem()


def config_for(directory, **settings) -> BrokerConfig:
    return BrokerConfig(node_id=1, log_dirs=(str(directory),), **settings)


def store_of(cluster_id="oKlTPFF2TkSvFtAbxy0nMg", node_id=1) -> SqliteMetaStore:
    return SqliteMetaStore.open(MEMORY, node_id=node_id, new_cluster_id=cluster_id)


def test_a_new_directory_gets_its_file_once(files, tmp_path):
    store = store_of()
    assert read_properties(files, str(tmp_path)) is None
    settle_identity(files, config_for(tmp_path), store, None)
    first = read_properties(files, str(tmp_path))
    assert first is not None
    assert (first.cluster_id, first.node_id) == ("oKlTPFF2TkSvFtAbxy0nMg", 1)
    assert len(first.directory_id) == 16
    settle_identity(files, config_for(tmp_path), store, first)
    assert read_properties(files, str(tmp_path)) == first


@pytest.mark.parametrize("other", [store_of("another"), store_of(node_id=2)])
def test_identity_file_of_other_broker_is_refused(files, tmp_path, other):
    settle_identity(files, config_for(tmp_path), store_of(), None)
    properties = read_properties(files, str(tmp_path))
    with pytest.raises(IdentityMismatch, match="is of cluster oKlTPFF2TkSvFtAbxy0nMg node 1"):
        settle_identity(files, config_for(tmp_path), other, properties)


def test_a_configuration_of_another_cluster_is_refused(files, tmp_path):
    with pytest.raises(IdentityMismatch, match="the configuration says another"):
        settle_identity(files, config_for(tmp_path, cluster_id="another"), store_of(), None)
    assert not (tmp_path / META_PROPERTIES).exists()


def test_cluster_identity_errors_name_database_and_cache(files, tmp_path):
    config = config_for(tmp_path, metadata="postgresql://nowhere/cluster", cluster_id="another")
    with pytest.raises(IdentityMismatch, match=r"the database of barnabas\.metadata belongs to"):
        settle_identity(files, config, store_of(), None)
    config = replace(config, cluster_id=None)
    settle_identity(files, config, store_of(), None)
    properties = read_properties(files, str(tmp_path))
    with pytest.raises(IdentityMismatch, match=r"is the cache of node 1 in .*this is node 2 in"):
        settle_identity(files, config, store_of(node_id=2), properties)


def test_a_file_that_cannot_be_read_is_refused(files, tmp_path):
    (tmp_path / META_PROPERTIES).write_text("version=7\n")
    with pytest.raises(Corrupt, match=r"meta\.properties"):
        read_properties(files, str(tmp_path))


def test_a_directory_prepared_for_a_cluster_keeps_its_id(tmp_path):
    text = "cluster.id=oKlTPFF2TkSvFtAbxy0nMg\ndirectory.id=2oZ8WeXBRFaBA0tYMzYzxg\n"
    (tmp_path / META_PROPERTIES).write_text(text + "node.id=1\nversion=1\n")
    with Broker(storage=tmp_path) as broker:
        assert broker.server.cluster_id == "oKlTPFF2TkSvFtAbxy0nMg"
    with Broker(storage=tmp_path) as broker:
        assert broker.server.cluster_id == "oKlTPFF2TkSvFtAbxy0nMg"
