"""The settings of docs/security.md are those of brokers that start."""

import re

import pytest

from barnabas.broker.config.loader import load_config
from barnabas.broker.config.properties import parse_properties
from barnabas.broker.security import key_server
from barnabas.testing import Broker
from tests.broker.security.wire import Wire
from tests.checkout import ROOT
from tests.issuer import standard_set

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```properties\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def settings_of(block):
    settings = {each.key: each.value for each in parse_properties(block)}
    return settings | {"listeners": settings["listeners"].replace(":9092", ":0")}


@pytest.mark.parametrize("block", BLOCKS)
def test_settings_start_a_broker(block, monkeypatch):
    monkeypatch.setattr(key_server, "fetch", lambda _url: standard_set())
    load_config(parse_properties(block))
    with Broker(config=settings_of(block)) as broker:
        assert broker.address


def test_the_users_of_the_first_example_log_in():
    with Broker(config=settings_of(BLOCKS[0])) as broker:
        with Wire(broker) as wire:
            assert wire.log_in(b"\0alice\0secret").error_code == 0
        with Wire(broker) as wire:
            _, last = wire.log_in_with_scram("admin", "change-me", "SCRAM-SHA-512")
            assert last.error_code == 0
