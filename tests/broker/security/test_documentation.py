"""Settings in docs/security/ are those of brokers that start; its lines are written as shown."""

import re

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import parse_properties
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.acls.access import Generation
from barnabas.broker.security.acls.authorizer import Authorizer
from barnabas.broker.security.acls.operations import Operation, ResourceType
from barnabas.broker.security.audit import AuditLog
from barnabas.broker.security.sasl import key_server
from barnabas.testing import Broker
from tests.broker.security.wire import Wire
from tests.broker.tls.listener import AUTHORITY
from tests.certificates import self_signed
from tests.checkout import ROOT
from tests.issuer import standard_set

PAGES = "".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "security").glob("*.md"))
)
BLOCKS = re.findall(r"^```properties\n(.*?)^```", PAGES, re.MULTILINE | re.DOTALL)
TEXTS = re.findall(r"^```text\n(.*?)^```", PAGES, re.MULTILINE | re.DOTALL)
SHOWN_MS = 1_795_571_552_120


def settings_of(block, directory):
    """Return the settings of a block, on a free port and with files of the test's."""
    text = block.replace("/etc/barnabas", str(directory)).replace("/run/secrets", str(directory))
    settings = {each.key: each.value for each in parse_properties(text)}
    if "ssl.keystore.location" in settings:
        credential = self_signed()
        (directory / "broker.pem").write_text(credential.key_pem() + credential.chain_pem)
        (directory / "clients.pem").write_text(AUTHORITY.root_pem)
    return settings | {"listeners": re.sub(r":909\d", ":0", settings["listeners"])}


@pytest.mark.parametrize("block", BLOCKS)
def test_settings_start_a_broker(block, monkeypatch, tmp_path):
    monkeypatch.setattr(key_server, "fetch", lambda _url: standard_set())
    load_config(parse_properties(block))
    with Broker(config=settings_of(block, tmp_path)) as broker:
        assert broker.address


def test_the_users_of_the_first_login_example_log_in(tmp_path):
    block = next(each for each in BLOCKS if "user_alice" in each)
    with Broker(config=settings_of(block, tmp_path)) as broker:
        with Wire(broker) as wire:
            assert wire.log_in(b"\0alice\0secret").error_code == 0
        with Wire(broker) as wire:
            _, last = wire.log_in_with_scram("admin", "change-me", "SCRAM-SHA-512")
            assert last.error_code == 0


def test_a_secret_in_a_file_is_looked_up(tmp_path):
    block = next(each for each in TEXTS if "config.providers" in each)
    (tmp_path / "barnabas.properties").write_text("keystore.password=found\n")
    text = block.replace("/run/secrets", str(tmp_path))
    assert load_config(parse_properties(text)).config.ssl_keystore_password == "found"


def test_the_line_of_the_audit_log():
    shown = next(each for each in TEXTS if '"event"' in each)
    lines = []
    audit = AuditLog(ManualClock(SHOWN_MS), lines.append)
    authorizer = Authorizer(Generation(), (), audit, allows_without_acls=False)
    authorizer.may(
        "User:alice", "10.0.0.7", Operation.WRITE, ResourceType.TOPIC, "orders", quiet=False
    )
    assert lines == [shown.rstrip("\n")]
