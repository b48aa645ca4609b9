"""Addresses in log lines and messages, as a client can use them."""

import pytest

from barnabas.broker.config.addresses import address_text
from barnabas.broker.daemon import listening_lines
from barnabas.testing import Broker


@pytest.mark.parametrize(
    ("host", "text"),
    [("127.0.0.1", "127.0.0.1:9"), ("broker", "broker:9"), ("::1", "[::1]:9"), ("::", "[::]:9")],
)
def test_address_text(host, text):
    assert address_text(host, 9) == text


def test_ipv6_listener_is_reported_in_brackets_and_kept_over_a_restart():
    with Broker(config={"listeners": "PLAINTEXT://[::1]:0"}) as broker:
        port = broker.address[1]
        assert listening_lines(broker.server) == [f"listening on PLAINTEXT://[::1]:{port}"]
        assert broker.bootstrap_servers == f"[::1]:{port}"
        broker.restart()
        assert broker.address == ("::1", port)
