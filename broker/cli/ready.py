"""``barnabas ready``: does a broker answer? Made for health checks, so it is quick and quiet.

It asks ApiVersions, the one request every broker answers without more ado, and exits with 0 when
the answer came, with 1 when it did not, and with 2 when it could not understand whom to ask.
"""

from __future__ import annotations

import argparse

from barnabas.broker.cli import configuration
from barnabas.broker.cli.arguments import addresses, seconds
from barnabas.broker.cli.configuration import load
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.client.deadline import Deadline
from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import KafkaError, Malformed

_ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104 - what a listener may say, not what we connect to
_CLIENT_ID = "barnabas-ready"
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
    deadline = Deadline(int(arguments.timeout * 1000))
    problems = []
    for host, port in _addresses(arguments):
        try:
            ask((host, port), deadline)
        except NotReady as problem:
            problems.append(f"{host}:{port}: {problem}")
        else:
            print(f"{host}:{port} is ready")
            return OK
    raise CommandError("not ready: " + "; ".join(problems))


def ask(address: tuple[str, int], deadline: Deadline) -> None:
    """Ask what the broker speaks; raises NotReady."""
    try:
        with WireClient(address, _CLIENT_ID, _left(deadline), _ANSWER_BYTES_MAX) as client:
            client.timeout_seconds = _left(deadline)
            _ = client.versions
    except TimeoutError:
        raise NotReady("no answer in time") from None
    except Malformed:
        raise NotReady("the answer is not Kafka's") from None
    except KafkaError as error:
        raise NotReady(f"the answer is error {error.code.value}") from None
    except OSError as error:
        raise NotReady(error.strerror or str(error)) from None


def _left(deadline: Deadline) -> float:
    if deadline.is_over:
        raise TimeoutError
    return max(deadline.left_ms, 1) / 1000


def _addresses(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    if arguments.bootstrap_server is None:
        endpoint = load(arguments).config.endpoints[0]
        if not endpoint.port:
            raise CommandError("the listener has no fixed port, say which with -b", USAGE)
        host = "localhost" if endpoint.host in _ANY_HOST else endpoint.host
        return [(host, endpoint.port)]
    return addresses(arguments.bootstrap_server)
