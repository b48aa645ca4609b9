"""``barnabas ready``: does a broker answer? Made for health checks, so it is quick and quiet.

It asks ApiVersions, the one request every broker answers without more ado, and exits with 0 when
the answer came, with 1 when it did not, and with 2 when it could not understand whom to ask.
"""

from __future__ import annotations

import argparse
import socket
import time

from barnabas.broker.cli import configuration
from barnabas.broker.cli.arguments import addresses, seconds
from barnabas.broker.cli.configuration import load
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.version import __version__
from barnabas.protocol.client import NEED_DATA, ClientConnection
from barnabas.protocol.errors import Malformed
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest

_ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104 - what a listener may say, not what we connect to
_API_VERSION = 3
_ANSWER_BYTES_MAX = 1024 * 1024


class NotReady(Exception):
    """The broker did not answer, or not as a broker does."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add whom to ask, and for how long."""
    parser.usage = "barnabas ready [server.properties] [options]"
    configuration.add_arguments(parser)
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        "--bootstrap-servers",
        metavar="HOST:PORT",
        help="the broker to ask (default: the first listener)",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=3.0,
        metavar="SECONDS",
        help="how long to wait (default 3)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask the brokers one after the other until one is ready."""
    deadline = time.monotonic() + arguments.timeout
    problems = []
    for host, port in _addresses(arguments):
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
    client = ClientConnection("barnabas-ready", max_frame_bytes=_ANSWER_BYTES_MAX)
    request = ApiVersionsRequest("barnabas-ready", __version__)
    _, chunks = client.request(API_VERSIONS, _API_VERSION, request)
    try:
        with socket.create_connection((host, port), timeout=_left(deadline)) as connection:
            connection.sendall(b"".join(chunks))
            while (answer := client.next_response()) is NEED_DATA:
                connection.settimeout(_left(deadline))
                received = connection.recv(65536)
                if not received:
                    raise NotReady("the connection was closed")
                client.receive_data(received)
    except TimeoutError:
        raise NotReady("no answer in time") from None
    except Malformed:
        raise NotReady("the answer is not Kafka's") from None
    except OSError as error:
        raise NotReady(error.strerror or str(error)) from None
    _, response = answer
    if response.error_code:
        raise NotReady(f"the answer is error {response.error_code}")


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
    return addresses(arguments.bootstrap_server)
