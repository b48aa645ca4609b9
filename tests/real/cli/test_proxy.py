"""Proxy of ``barnabas prove`` on ports of the machine."""

from __future__ import annotations

import contextlib
import gc
import socket

import pytest

from barnabas.broker.cli.proving.proxy import HOST, Proxy
from barnabas.broker.cli.proving.served import free_port

pytestmark = pytest.mark.timeout(60)


def test_port_that_is_in_use_is_an_error():
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match="address already in use"), Proxy((HOST, 1), port, 0):
            raise AssertionError("it listens")


def test_connection_that_is_accepted_at_the_end_is_closed():
    address = HOST, free_port(HOST)
    with socket.socket() as client:
        with Proxy((HOST, free_port(HOST)), address[1], 0) as proxy:
            end = proxy._stopping.set

            def connect_and_end() -> None:
                client.connect(address)
                # The loop accepts the connection in the turn in which it ends.
                proxy._loop.call_soon(end)

            proxy._stopping.set = connect_and_end
        gc.collect()  # A transport that is still open warns, which fails the test.
        client.settimeout(30)
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
