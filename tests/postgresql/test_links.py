"""The links between brokers and servers can be cut, each by itself."""

import contextlib
import socket
import socketserver
import threading

import pytest

from tests.counterparts.broker_process import HOST
from tests.counterparts.probe import free_port
from tests.postgresql.links import Between, Cut, Links

TIMEOUT_S = 20
QUIET_S = 0.2


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        while data := self.connection.recv(100):
            self.connection.sendall(data)


@pytest.fixture
def echo_port():
    with socketserver.ThreadingTCPServer((HOST, 0), Echo) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def links():
    with Links() as running:
        yield running


@contextlib.contextmanager
def connected(port):
    with socket.create_connection((HOST, port), TIMEOUT_S) as connection:
        yield connection


def echoed(connection, data=b"x"):
    connection.sendall(data)
    return received(connection, len(data))


def received(connection, size):
    """Return ``size`` bytes, in any number of pieces, or fewer at the end of the connection."""
    found = b""
    while len(found) < size and (more := connection.recv(size - len(found))):
        found += more
    return found


def hears_nothing(connection):
    connection.settimeout(QUIET_S)
    with pytest.raises(TimeoutError):
        connection.recv(1)
    connection.settimeout(TIMEOUT_S)
    return True


def is_reset(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("how", Cut)
def test_a_link_is_cut_and_mended(links, echo_port, how):
    port, link = free_port(), Between("here", "there")
    links.listen(port, echo_port, link)
    with connected(port) as before:
        assert echoed(before) == b"x"
        links.cut([link], how)
        if how is Cut.RESET:
            assert is_reset(before)
            with connected(port) as during:
                assert is_reset(during)
        else:
            before.sendall(b"y")
            assert hears_nothing(before)
        links.mend([link])
        if how is Cut.LATE:
            assert before.recv(1) == b"y"
        else:
            assert is_reset(before)
    with connected(port) as after:
        assert echoed(after) == b"x"
    assert links.cuts == 1


def test_brokers_are_distinguished_by_their_client_id(links, echo_port):
    port = free_port()
    links.listen_for_brokers(port, echo_port, "there")
    links.cut([Between("one", "there")], Cut.LATE)
    with connected(port) as cut, connected(port) as whole:
        question = _question("one")
        cut.sendall(question)
        assert echoed(whole, _question("another")) == _question("another")
        assert hears_nothing(cut)
        links.mend([Between("one", "there")])
        assert received(cut, len(question)) == question


def _question(client_id):
    body = b"\0\x12\0\0\0\0\0\1" + len(client_id).to_bytes(2) + client_id.encode() + b"rest"
    return len(body).to_bytes(4) + body
