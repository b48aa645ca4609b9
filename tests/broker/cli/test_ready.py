import socket
import threading

import pytest

from tests.broker.cli.command import Served, barnabas, error_of, free_port


def test_a_broker_is_ready(tmp_path):
    with Served(tmp_path) as broker:
        result = barnabas("ready", "-b", broker.address, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (0, f"{broker.address} is ready\n")
        listeners = f"PLAINTEXT://:{broker.port}"
        result = barnabas("ready", cwd=tmp_path, env={"KAFKA_LISTENERS": listeners})
        assert (result.returncode, result.stdout) == (0, f"localhost:{broker.port} is ready\n")
        several = f"127.0.0.1:{free_port()}, {broker.address}"
        assert barnabas("ready", "--bootstrap-servers", several, cwd=tmp_path).returncode == 0


def test_nobody_there(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    line = error_of(barnabas("ready", "-b", address, cwd=tmp_path), 1)
    assert line == f"barnabas: not ready: {address}: Connection refused"


@pytest.mark.parametrize("address", ["localhost", "localhost:0", "localhost:70000", "::1:9092", ""])
def test_what_is_no_address(address, tmp_path):
    assert "is not HOST:PORT" in error_of(barnabas("ready", "-b", address, cwd=tmp_path), 2)


def test_a_listener_without_a_fixed_port(tmp_path):
    result = barnabas("ready", "-Xlisteners=PLAINTEXT://localhost:0", cwd=tmp_path)
    assert "no fixed port" in error_of(result, 2)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the answer is not Kafka's"),
        (b"\0\0\0\4\0\0\0\0", "the answer is not Kafka's"),
        (b"\0\0\0\x10\0\0\0\0\0\x23\0\0\0\1\0\x12\0\0\0\4", "the answer is error 35"),
        (b"\0\0\0\x0c\0\0\0\0\0\x38\1\0\0\0\0\0", "the answer is error 56"),
        (b"\0\0\0\x0c\0\0\0\7\0\0\1\0\0\0\0\0", "the answer is not Kafka's"),
        (b"\0\0\0\x0c\0\0\0\0\0\0\1", "connection closed during ApiVersions"),
        (b"", "connection closed during ApiVersions"),
        (None, "no answer in time"),
    ],
)
def test_somebody_else_is_there(answer, expected, tmp_path):
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
        result = barnabas("ready", "-b", address, "--timeout", "1", cwd=tmp_path)
        thread.join()
    assert error_of(result, 1) == f"barnabas: not ready: {address}: {expected}"
