"""``barnabas ready``: does a broker answer? Made for health checks, so it is quick and quiet.

It asks ApiVersions, the one request every broker answers without more ado, and exits with 0 when
the answer came, with 1 when it did not, and with 2 when it could not understand whom to ask.
"""

from __future__ import annotations

import argparse
import re
import socket
import time

from broker.cli.configuration import load
from broker.cli.errors import OK, USAGE, CommandError
from broker.version import __version__
from protocol.errors import Malformed
from protocol.header import RequestHeader, decode_response_header, request_frame
from protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest

_ADDRESS = re.compile(r"(?:\[([^\]]+)\]|([^\[\]:]+)):([0-9]{1,5})")
_ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104 - what a listener may say, not what we connect to
_API_VERSION = 3
_CORRELATION_ID = 1
_ANSWER_BYTES_MAX = 1024 * 1024


class NotReady(Exception):
    """The broker did not answer, or not as a broker does."""


def run(arguments: argparse.Namespace) -> int:
    """Ask the brokers one after the other until one is ready."""
    addresses = _addresses(arguments)
    deadline = time.monotonic() + arguments.timeout
    problems = []
    for host, port in addresses:
        try:
            ask(host, port, deadline)
        except NotReady as problem:
            problems.append(f"{host}:{port}: {problem}")
        else:
            print(f"{host}:{port} is ready")
            return OK
    raise CommandError("not ready: " + "; ".join(problems))


def ask(host: str, port: int, deadline: float) -> None:
    """Send ApiVersions and check the answer; raises NotReady. ``deadline`` is monotonic seconds."""
    header = RequestHeader(API_VERSIONS.key, _API_VERSION, _CORRELATION_ID, "barnabas-ready")
    request = ApiVersionsRequest("barnabas-ready", __version__)
    try:
        with socket.create_connection((host, port), timeout=_left(deadline)) as connection:
            connection.sendall(b"".join(request_frame(API_VERSIONS, header, request)))
            size = int.from_bytes(_receive(connection, 4, deadline))
            if size > _ANSWER_BYTES_MAX:
                raise NotReady("the answer is not Kafka's")
            answer = memoryview(_receive(connection, size, deadline))
    except TimeoutError:
        raise NotReady("no answer in time") from None
    except OSError as error:
        raise NotReady(error.strerror or str(error)) from None
    check_answer(answer)


def check_answer(answer: memoryview) -> None:
    """Check a response frame (without its length) to our request; raises NotReady."""
    try:
        correlation_id, position = decode_response_header(answer, API_VERSIONS.key, _API_VERSION)
        if correlation_id != _CORRELATION_ID:
            raise NotReady("the answer is not Kafka's")
        # An error comes first in every version; with error 35 the rest has the form of version 0.
        error_code = int.from_bytes(answer[position : position + 2], signed=True)
        if error_code:
            raise NotReady(f"the answer is error {error_code}")
        API_VERSIONS.decode_response(answer, position, _API_VERSION)
    except Malformed:
        raise NotReady("the answer is not Kafka's") from None


def _receive(connection: socket.socket, size: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        connection.settimeout(_left(deadline))
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise NotReady("the connection was closed")
        data += chunk
    return bytes(data)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _addresses(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    if arguments.bootstrap_server is None:
        endpoint = load(arguments).config.endpoints[0]
        if not endpoint.port:
            raise CommandError("the listener has no fixed port, say which with -b", USAGE)
        host = "localhost" if endpoint.host in _ANY_HOST else endpoint.host
        return [(host, endpoint.port)]
    addresses = []
    for item in arguments.bootstrap_server.split(","):
        match = _ADDRESS.fullmatch(item.strip())
        if match is None or not 0 < int(match[3]) < 65536:
            raise CommandError(f"{item.strip()} is not HOST:PORT", USAGE)
        addresses.append((match[1] or match[2], int(match[3])))
    return addresses
