"""docs/cluster.md says what is so: its settings load, its numbers and names are the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from barnabas.broker.cluster.peers.settings import listener_of_brokers, security_of_brokers
from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import parse_properties
from barnabas.storage.postgresql.durability import Durability, NotDurable, judge
from barnabas.storage.replicated import flush_committer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SAFE = Durability("on", "on", "on", 'ANY 1 ("a")', 1, 15, 1)


def block(beginning):
    (found,) = [each for each in BLOCKS if each.startswith(beginning)]
    return found


def test_how_three_brokers_are_started():
    commands = block("pip install")
    (serve,) = re.findall(r"^barnabas serve (\S+)$", commands, re.MULTILINE)
    ((file, text),) = re.findall(
        r"^cat > (\S+) <<'END'\n(.*?)^END$", commands, re.MULTILINE | re.DOTALL
    )
    assert file == serve
    found = load_config(parse_properties(text))
    assert (found.ignored, found.unknown) == ((), ())
    assert found.config.is_of_cluster
    assert listener_of_brokers(found.config).name == "BROKERS"


def test_the_settings_between_brokers():
    listeners = "listeners=CLIENTS://:9092,BROKERS://:19092\ninter.broker.listener.name=BROKERS\n"
    found = load_config(parse_properties(listeners + block("listener.security")))
    assert (found.ignored, found.unknown) == ((), ())
    security = security_of_brokers(found.config)
    assert security.protocol == "SASL_SSL"
    assert security.credential is not None


def test_the_keys_and_their_defaults():
    named = set(re.findall(r"^\| `([a-z.]+)` \|", PAGE, re.MULTILINE))
    assert named == {
        "advertised.listeners",
        "barnabas.lease.ms",
        "barnabas.metadata",
        "inter.broker.listener.name",
        "log.dirs",
        "node.id",
    }
    assert named <= BROKER_CONFIGS.keys()
    assert BROKER_CONFIGS["barnabas.lease.ms"].default_text == "10000"
    assert "Times are for `barnabas.lease.ms=10000`" in PAGE


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("a version before 15", SAFE._replace(version=14)),
        ("`fsync` or", SAFE._replace(fsync="off")),
        ("`full_page_writes` is not", SAFE._replace(full_page_writes="off")),
        ("`synchronous_commit` of", SAFE._replace(synchronous_commit="local")),
        ("a standby follows", SAFE._replace(synchronous_standby_names="")),
    ],
)
def test_what_is_refused(what, found):
    (line,) = [each for each in PAGE.splitlines() if each.startswith("|") and what in each]
    assert "| refuses to start" in line
    with pytest.raises(NotDurable):
        judge(found)


def test_what_is_warned_of():
    (line,) = [each for each in PAGE.splitlines() if each.startswith("| no standby")]
    assert "starts, and warns: all that is acknowledged is on this one server" in line
    warning = judge(SAFE._replace(synchronous_standby_names="", standbys=0))
    assert warning is not None
    assert "all that is acknowledged is on this one server" in warning
    assert judge(SAFE) is None


def test_its_numbers():
    assert flush_committer._FLUSH_BYTES_MAX == 4 * 1024 * 1024
    assert "up to 4 MiB" in PAGE


def test_its_alerts_and_files_are_there():
    rules = yaml.safe_load((ROOT / "docker/prometheus/alerts.yml").read_text())["groups"][0][
        "rules"
    ]
    named = set(re.findall(r"`(Barnabas\w+)`", PAGE))
    assert len(named) >= 7
    assert named <= {rule["alert"] for rule in rules}
    for path in re.findall(r"`(docker/[^`]+)`", PAGE):
        assert (ROOT / path).exists()
