import socket
import threading
import time

import pytest

from tests.real.cli.command import Served, barnabas, error_of, free_port
from tests.secured import (
    LISTENERS,
    as_properties,
    broker_settings,
    login,
    token_login,
    trusting,
)
from tests.token_server import TokenServerForTests, client_credentials

CLOSED = "connection closed during ApiVersions; does this listener want TLS (security.protocol)?"


def test_a_broker_is_ready(tmp_path):
    with Served(tmp_path) as broker:
        result = barnabas("ready", "-b", broker.address, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (0, f"{broker.address} is ready\n")
        listeners = f"PLAINTEXT://:{broker.port}"
        result = barnabas("ready", cwd=tmp_path, env={"KAFKA_LISTENERS": listeners})
        assert (result.returncode, result.stdout) == (0, f"localhost:{broker.port} is ready\n")
        several = f"127.0.0.1:{free_port()}, {broker.address}"
        assert barnabas("ready", "--bootstrap-servers", several, cwd=tmp_path).returncode == 0


def test_refused_connection_is_reported(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    line = error_of(barnabas("ready", "-b", address, cwd=tmp_path), 1)
    assert line == f"barnabas: not ready: {address}: Connection refused"


@pytest.mark.parametrize("address", ["localhost", "localhost:0", "localhost:70000", "::1:9092", ""])
def test_invalid_address_is_rejected(address, tmp_path):
    assert "is not HOST:PORT" in error_of(barnabas("ready", "-b", address, cwd=tmp_path), 2)


def test_a_listener_without_a_fixed_port(tmp_path):
    result = barnabas("ready", "-Xlisteners=PLAINTEXT://localhost:0", cwd=tmp_path)
    assert "no fixed port" in error_of(result, 2)


def patience(answer):
    """Return a timeout: long for a server with a response, on a busy machine, else short."""
    return "--timeout", "1" if answer is None else "60"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the answer is not Kafka's"),
        (b"\0\0\0\4\0\0\0\0", "the answer is not Kafka's"),
        (
            b"\0\0\0\x10\0\0\0\0\0\x23\0\0\0\1\0\x12\0\0\0\4",
            "the response has the error UNSUPPORTED_VERSION",
        ),
        (b"\0\0\0\x0c\0\0\0\0\0\x38\1\0\0\0\0\0", "the response has the error KAFKA_STORAGE_ERROR"),
        (b"\0\0\0\x0c\0\0\0\7\0\0\1\0\0\0\0\0", "the answer is not Kafka's"),
        (b"\0\0\0\x0c\0\0\0\0\0\0\1", CLOSED),
        (b"", CLOSED),
        (None, "no response within the --timeout"),
    ],
)
def test_server_without_kafka_protocol_is_reported(answer, expected, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                if answer is not None:
                    connection.sendall(answer)
                else:
                    connection.recv(4096)

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        result = barnabas("ready", "-b", address, *patience(answer), cwd=tmp_path)
        thread.join()
    assert error_of(result, 1) == f"barnabas: not ready: {address}: {expected}"


# ------------------------------------------------------------------- brokers that ask for something


class Secured:
    """A broker process with its configuration in a file, as in a container."""

    def __init__(self, directory, keys, *listeners, http=False):
        self.directory = directory
        self.http_port = free_port()
        self.ports = {name: free_port() for name in listeners}
        self.settings = broker_settings(keys, self.ports) | {
            "barnabas.http.listener": f"127.0.0.1:{self.http_port}" if http else ""
        }
        self.path = directory / "server.properties"
        self.path.write_text(as_properties(self.settings))

    def __enter__(self):
        self._served = Served(self.directory, str(self.path), own_listeners=True)
        self._served.__enter__()
        return self

    def __exit__(self, *error):
        self._served.__exit__(*error)

    def address(self, name):
        return f"127.0.0.1:{self.ports[name]}"


def is_ready(broker, address, *arguments):
    result = barnabas("ready", *arguments, cwd=broker.directory)
    assert (result.returncode, result.stdout) == (0, f"{address} is ready\n"), result.stderr


@pytest.mark.parametrize("listeners", [("SASL",), ("TLS",), ("SASL_TLS",), ("MTLS", "SASL_TLS")])
def test_without_credentials(tmp_path, keys, listeners):
    """A container has the broker's configuration, and no user's password."""
    with Secured(tmp_path, keys, *listeners) as broker:
        is_ready(broker, broker.address(listeners[-1]), broker.path)


def test_where_every_listener_wants_a_certificate(tmp_path, keys):
    with Secured(tmp_path, keys, "MTLS", http=True) as broker:
        is_ready(broker, f"127.0.0.1:{broker.http_port}", broker.path)
        result = barnabas("ready", broker.path, "-Xbarnabas.http.listener=", cwd=broker.directory)
        assert "there is no HTTP port to ask" in error_of(result, 2)
    line = error_of(barnabas("ready", broker.path, cwd=broker.directory), 1)
    assert line == f"barnabas: not ready: 127.0.0.1:{broker.http_port}: Connection refused"


def test_as_a_client(tmp_path, keys):
    own = {"ssl.keystore.location": keys.certificate, "ssl.keystore.type": "PEM"}
    with Secured(tmp_path, keys, *LISTENERS) as broker:
        for name, more in (
            ("TLS", {}),
            ("MTLS", own),
            ("SASL", login("SCRAM-SHA-256")),
            ("SASL_TLS", token_login(keys.token)),
        ):
            path = tmp_path / f"{name}.properties"
            path.write_text(as_properties(trusting(keys, LISTENERS[name]) | more))
            is_ready(
                broker, broker.address(name), "-b", broker.address(name), "--command-config", path
            )
        path.write_text(as_properties(trusting(keys, "SASL_SSL") | login("PLAIN", password="no")))
        address = broker.address("SASL_TLS")
        result = barnabas("ready", "-b", address, "--command-config", path, cwd=tmp_path)
        assert error_of(result, 1) == (
            f"barnabas: not ready: {address}: login by PLAIN as alice: "
            "Authentication failed: Invalid username or password"
        )
        assert "is TLS spoken" not in result.stderr
        address = broker.address("TLS")
        line = error_of(barnabas("ready", "-b", address, cwd=tmp_path), 1)
        assert line.endswith(
            ": the listener expects TLS: set security.protocol=SSL, or SASL_SSL with a login"
        )


def test_as_a_client_with_tokens_of_a_server(tmp_path, keys):
    path = tmp_path / "client.properties"
    with (
        Secured(tmp_path, keys, *LISTENERS) as broker,
        TokenServerForTests() as server,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        address = broker.address("SASL_TLS")
        ask = ("-b", address, "--command-config", path)

        def tokens_from(url):
            path.write_text(as_properties(trusting(keys, "SASL_SSL") | client_credentials(url)))

        tokens_from(server.url)
        is_ready(broker, address, *ask)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/token"
        tokens_from(url)
        started = time.monotonic()
        result = barnabas("ready", *ask, "--timeout", "3", cwd=tmp_path)
        assert time.monotonic() - started < 100, "it waits for who does not answer"
        assert error_of(result, 1) == (
            f"barnabas: not ready: {address}: sasl.oauthbearer.token.endpoint.url: {url}: "
            "it does not answer in time"
        )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\nrecovery", "/readyz returned 503: recovery"),
        (b"\0\0\0\1", "the answer is not HTTP"),
        (b"", "the answer is not HTTP"),
        (None, "no response within the --timeout"),
    ],
)
def test_server_without_readyz_at_the_http_port_is_reported(tmp_path, keys, answer, expected):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                assert connection.recv(4096).startswith(b"GET /readyz HTTP/1.1\r\n")
                if answer is not None:
                    connection.sendall(answer)
                else:
                    connection.recv(4096)

        thread = threading.Thread(target=serve)
        thread.start()
        broker = Secured(tmp_path, keys, "MTLS")
        address = f"127.0.0.1:{server.getsockname()[1]}"
        result = barnabas(
            *("ready", broker.path, f"-Xbarnabas.http.listener={address}", *patience(answer)),
            cwd=tmp_path,
        )
        thread.join()
    assert error_of(result, 1) == f"barnabas: not ready: {address}: {expected}"
