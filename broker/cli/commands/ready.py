"""``barnabas ready``: whether a broker responds. Made for health checks, so it is quick and quiet.

It sends ApiVersions, the one request that every broker serves without authentication, and exits
with 0 after a response, with 1 without one, and with 2 if the address is not known.

Without ``-b`` it checks the broker that the configuration describes, without credentials: the first
listener that requires no client certificate, whose own certificate is not verified; if there is
none, ``/readyz`` of the HTTP port. With ``-b`` it is a client like any other: it verifies the
broker's certificate, and authenticates if client settings require that.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.cli import configuration
from barnabas.broker.cli.arguments import add_bootstrap, add_client_settings, add_timeout, addresses
from barnabas.broker.cli.client_settings import client_security
from barnabas.broker.cli.configuration import load
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.printing import print_text
from barnabas.broker.client.access import OPEN, Access
from barnabas.broker.client.deadline import Deadline
from barnabas.broker.client.dialing import connect
from barnabas.broker.client.errors import TlsIsSpoken, TokenUnavailable, WrongSetting
from barnabas.broker.client.problems import Stage, reason_of
from barnabas.broker.client.wire_client import WireClient
from barnabas.broker.config.addresses import address_text
from barnabas.broker.security.tls.client_auth import client_auth_of
from barnabas.protocol.errors import KafkaError, Malformed
from barnabas.protocol.sasl.login_client import LoginRefused

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.config.listeners import Endpoint

_ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104 - what a listener may say, not what we connect to
_CLIENT_ID = "barnabas-ready"
_ANSWER_BYTES_MAX = 1024 * 1024
_HTTP_ANSWER_BYTES_MAX: Final = 64 * 1024

Address = tuple[str, int]


class NotReady(Exception):
    """The broker did not respond, or its response is not that of a broker."""


class Check(NamedTuple):
    """Addresses to check, and the access to them."""

    addresses: list[Address]
    access: Access = OPEN
    is_http: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the brokers and the timeout."""
    parser.usage = "barnabas ready [server.properties] [options]"
    configuration.add_arguments(parser)
    add_bootstrap(parser, "broker to check (default: the first listener)")
    add_client_settings(parser)
    add_timeout(parser, 3, "timeout")


def run(arguments: argparse.Namespace) -> int:
    """Check the brokers one after the other until one is ready."""
    deadline = Deadline(int(arguments.timeout * 1000))
    check = _check(arguments)
    problems = []
    for host, port in check.addresses:
        try:
            if check.is_http:
                ask_http((host, port), deadline)
            else:
                ask((host, port), deadline, check.access)
        except NotReady as problem:
            problems.append(f"{address_text(host, port)}: {problem}")
        else:
            print_text(f"{address_text(host, port)} is ready")
            return OK
    raise CommandError("not ready: " + "; ".join(problems))


def ask(address: Address, deadline: Deadline, access: Access = OPEN) -> None:
    """Request the versions, authenticated if there is a credential; raises NotReady."""
    stage = Stage.CONNECTING
    try:
        left_seconds = _left(deadline)
        with WireClient(
            address, _CLIENT_ID, left_seconds, _ANSWER_BYTES_MAX, access.context
        ) as client:
            stage = Stage.INTRODUCING
            client.timeout_seconds = _left(deadline)
            if access.credential is not None:
                login = access.new_login(_left(deadline))
                client.timeout_seconds = _left(deadline)
                client.log_in(login)
            _ = client.versions
    except TimeoutError:
        raise NotReady("no response within the --timeout") from None
    except (OSError, TlsIsSpoken, LoginRefused, WrongSetting, TokenUnavailable) as error:
        raise NotReady(str(reason_of(error, address[0], access, stage))) from None
    except Malformed:
        raise NotReady("the answer is not Kafka's") from None
    except KafkaError as error:
        raise NotReady(f"the response has the error {error.code.name}") from None


def ask_http(address: Address, deadline: Deadline) -> None:
    """Request ``/readyz``; raises NotReady."""
    request = f"GET /readyz HTTP/1.1\r\nHost: {address[0]}\r\nConnection: close\r\n\r\n"
    answer = b""
    try:
        with connect(address, _left(deadline)) as connection:
            connection.sendall(request.encode())
            while len(answer) < _HTTP_ANSWER_BYTES_MAX:
                connection.settimeout(_left(deadline))
                data = connection.recv(_HTTP_ANSWER_BYTES_MAX)
                if not data:
                    break
                answer += data
    except TimeoutError:
        raise NotReady("no response within the --timeout") from None
    except OSError as error:
        raise NotReady(error.strerror or str(error)) from None
    head, _, body = answer.decode("utf-8", "replace").partition("\r\n\r\n")
    words = head.partition("\r\n")[0].split(" ")
    if not words[0].startswith("HTTP/1.") or len(words) < 2:
        raise NotReady("the answer is not HTTP")
    if words[1] != "200":
        raise NotReady(f"/readyz returned {words[1]}: {body.strip()}")


def _left(deadline: Deadline) -> float:
    if deadline.is_over:
        raise TimeoutError
    return max(deadline.left_ms, 1) / 1000


# -------------------------------------------------------------------------------------- whom to ask


def _check(arguments: argparse.Namespace) -> Check:
    path, properties = arguments.command_config, arguments.command_property
    server = arguments.bootstrap_server
    if server is None and not path and not properties:
        return _own_check(load(arguments).config)
    security = client_security(path, properties, os.environ)
    access = OPEN if security is None else security.access()
    if server is not None:
        return Check(addresses(server), access)
    return Check([_of(load(arguments).config.endpoints[0])], access)


def _own_check(config: BrokerConfig) -> Check:
    """Return the check of a broker that requires no user."""
    for endpoint in config.endpoints:
        if not endpoint.has_tls:
            return Check([_of(endpoint)])
        listener = config.for_listener(endpoint.name)
        if client_auth_of(listener, is_login=endpoint.has_login) != "required":
            return Check([_of(endpoint)], _trusting_access())
    if config.http_address is None:
        raise CommandError(
            "every listener wants a client certificate, and there is no HTTP port to ask: say whom "
            "to ask and how, with -b and --command-config, or set barnabas.http.listener",
            USAGE,
        )
    return Check([_reachable(*config.http_address)], is_http=True)


def _trusting_access() -> Access:
    """Accept any certificate: readiness does not depend on its issuer."""
    from barnabas.broker.client.security import ClientSecurity
    from barnabas.broker.security.tls.client import VERIFICATION

    return ClientSecurity("SSL", {VERIFICATION: "false"}).access()


def _of(endpoint: Endpoint) -> Address:
    return _reachable(endpoint.host, endpoint.port)


def _reachable(host: str, port: int) -> Address:
    if not port:
        raise CommandError("the listener has no fixed port; give it with -b", USAGE)
    return "localhost" if host in _ANY_HOST else host, port
