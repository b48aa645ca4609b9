"""Proxy of ``barnabas prove`` on ports of the machine."""

from __future__ import annotations

import socket

import pytest

from barnabas.broker.cli.proving.proxy import HOST, Proxy

pytestmark = pytest.mark.timeout(60)


def test_port_that_is_in_use_is_an_error():
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match="address already in use"), Proxy((HOST, 1), port, 0):
            raise AssertionError("it listens")
