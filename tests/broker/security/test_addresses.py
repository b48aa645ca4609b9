"""One address in all its spellings: for ACLs, quotas, limits and connections."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from barnabas.broker.config.addresses import address_of, network_of, plain_host, without_zone
from barnabas.broker.config.connection_limits import address_limits
from barnabas.broker.security.acls.acls import kept_host
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell

LOCAL = "127.0.0.1"
OF_LOCAL = (
    LOCAL,
    "::ffff:127.0.0.1",
    "::FFFF:127.0.0.1",
    "::ffff:7f00:1",
    "0:0:0:0:0:ffff:127.0.0.1",
    "0000:0000:0000:0000:0000:FFFF:7F00:0001",
)
"""Spellings of one address."""


@pytest.mark.parametrize("text", OF_LOCAL)
def test_mapped_address_is_the_ipv4_address(text):
    assert address_of(text) == ip_address(LOCAL)
    assert network_of(text) == ip_network(LOCAL)
    assert kept_host(text) == plain_host(text) == LOCAL
    assert address_limits(f"[{text}]:7") == {LOCAL: 7}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("*", "*"),
        ("::1", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8::A", "2001:db8::a"),
        ("2001:db8:0:0:0:0:0:a", "2001:db8::a"),
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.2.3/32", "10.1.2.3"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("10.0.0.0/255.0.0.0", "10.0.0.0/8"),
        ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::ffff:0:0/95", "::fffe:0:0/95"),
        ("::/0", "::/0"),
        ("2001:DB8::/32", "2001:db8::/32"),
    ],
)
def test_acl_keeps_a_host_in_its_shortest_form(text, kept):
    assert kept_host(text) == kept
    assert kept_host(kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "127.1", "010.0.0.1", "2130706433", "0x7f000001", "127.0.0.1.", "[::1]"),
        *("::1%", "fe80::1%eth0", "fe80::/10%eth0", "::ffff:127.0.0.1%lo", "127.0.0.1:9092"),
        *("::ffff:127.0.0.256", "::ffff:127.0.0.1/129", "localhost", "10.0.0.0/33", "**"),
        *("\uff11\uff12\uff17.0.0.1", "127.0.0.1\n"),
    ],
)
def test_host_that_no_connection_has_is_refused(text):
    assert kept_host(text) is None


@pytest.mark.parametrize(
    ("peer", "host", "found_by"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("::1", "::1", "::1"),
        ("fe80::1%eth0", "fe80::1%eth0", "fe80::1"),
        ("?", "?", "?"),
    ],
)
def test_peer_has_one_form(peer, host, found_by):
    assert plain_host(peer) == host
    assert without_zone(plain_host(peer)) == found_by
    if peer != "?":
        assert str(address_of(plain_host(peer))) == found_by


# ------------------------------------------------------------------------------ on a broker


@pytest.mark.parametrize("host", OF_LOCAL)
def test_quota_for_any_spelling_is_that_of_the_address(host, monkeypatch):
    with Broker() as broker:
        shell = Shell(monkeypatch, broker.bootstrap_servers)
        limit = "connection_creation_rate=7"
        assert shell("quotas", "set", limit, "--ip", host).exit_code == 0
        limits = broker.server.quota_rules.limits
        assert broker.call(lambda: limits.of_address(LOCAL)) == 7
        listed = shell("quotas", "list", "--ip", host, "--format", "json").json
        assert LOCAL in str(listed)
