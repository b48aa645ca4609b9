"""The settings of a broker that is one of several: what is shown of them, what they imply."""

import argparse

import pytest

from barnabas.broker.cli.configuration import load
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.config.cluster import has_password, without_password
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import parse_properties
from barnabas.broker.config.types import ConfigError

SECRET = "s3cr3t"
ADDRESS = f"postgresql://barnabas:{SECRET}@first:5432,second/logs?sslmode=require"


def of(text, environment=None):
    return load_config(parse_properties(text), environment or {}).config


@pytest.mark.parametrize(
    ("address", "shown", "is_secret"),
    [
        (ADDRESS, "postgresql://first:5432,second/logs", True),
        ("postgres://barnabas@first/logs", "postgresql://first/logs", False),
        (f"postgresql://first/logs?user=me&password={SECRET}", "postgresql://first/logs", True),
        (f"postgresql://first/logs?sslpassword={SECRET}", "postgresql://first/logs", True),
        ("postgresql://[::1]:5432/logs", "postgresql://[::1]:5432/logs", False),
        ("postgresql:///logs", "postgresql:///logs", False),
        # What should have been escaped, and was not.
        (f"postgresql://me:a@{SECRET}@first/logs", "postgresql://first/logs", True),
        (f"postgresql://me:{SECRET}/{SECRET}@first/logs", "postgresql://...", True),
        (f"postgresql://me:{SECRET}#{SECRET}@first/logs", "postgresql://...", True),
        (f"postgresql://me:{SECRET}?{SECRET}@first/logs", "postgresql://...", True),
        (f"postgresql://[me:{SECRET}@first/logs", "postgresql://...", True),
    ],
)
def test_hosts_and_database_are_shown_and_no_secret_is(address, shown, is_secret):
    assert without_password(address) == shown
    assert has_password(address) is is_secret


def test_the_address_is_shown_nowhere():
    config = of(f"barnabas.metadata={ADDRESS}")
    assert config.is_of_cluster
    assert config.metadata == ADDRESS
    assert SECRET not in repr(config)
    (entry,) = [each for each in config.describe() if each.name == "barnabas.metadata"]
    assert entry.is_sensitive
    assert entry.value is None
    assert SECRET not in repr(entry)


def test_one_that_is_none_is_not_repeated():
    with pytest.raises(ConfigError, match="postgresql://user:password@host") as caught:
        of(f"barnabas.metadata=mysql://me:{SECRET}@first/logs")
    assert SECRET not in str(caught.value)


def test_metadata_address_is_read_from_a_provider(tmp_path):
    (tmp_path / "metadata").write_text(ADDRESS)
    text = (
        "config.providers=dir\n"
        "config.providers.dir.class="
        "org.apache.kafka.common.config.provider.DirectoryConfigProvider\n"
        f"barnabas.metadata=${{dir:{tmp_path}:metadata}}\n"
    )
    assert of(text).metadata == ADDRESS
    assert of("", {"KAFKA_BARNABAS_METADATA": ADDRESS}).metadata == ADDRESS
    variable = {"KAFKA_BARNABAS_METADATA_FILE": str(tmp_path / "metadata")}
    assert of("", variable).metadata == ADDRESS


def test_as_an_argument_it_has_no_password(monkeypatch):
    for name in ("BARNABAS_DEFAULTS", "BARNABAS_PROPERTIES"):
        monkeypatch.delenv(name, raising=False)

    def given(address):
        override = [f"barnabas.metadata={address}"]
        return load(argparse.Namespace(properties=None, override=override)).config

    assert given("postgresql://barnabas@first/logs").is_of_cluster
    with pytest.raises(CommandError, match=r"barnabas\.metadata is a secret") as caught:
        given(ADDRESS)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "wait_ms"),
    [
        ("", 100),
        (f"barnabas.metadata={ADDRESS}", 500),
        (f"barnabas.metadata={ADDRESS}\nbarnabas.transaction.wait.ms=7", 7),
    ],
)
def test_a_request_waits_longer_for_a_transaction_in_a_cluster(text, wait_ms):
    assert of(text).transaction_wait_ms == wait_ms


def test_a_lease_is_neither_too_short_nor_too_long():
    assert of("").lease_ms == 10_000
    for wrong in ("999", "300001"):
        with pytest.raises(ConfigError, match=r"barnabas\.lease\.ms"):
            of(f"barnabas.lease.ms={wrong}")
