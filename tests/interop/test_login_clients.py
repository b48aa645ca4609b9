"""Real clients over every protocol, by every mechanism: a permitted client works, a refused one
gets the error of Apache Kafka."""

from __future__ import annotations

import contextlib
import itertools
import re
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import NamedTuple, Self

import confluent_kafka
import pytest

from barnabas.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateResponse
from barnabas.testing import Broker
from tests.broker.metrics.scrape import scrape
from tests.broker.security.access_users import add_acls
from tests.broker.security.wire import Wire
from tests.certificates import DAY, Authority
from tests.counterparts.kafka_tools import (
    ACLS,
    CONFIGS,
    CONSOLE_CONSUMER,
    run_tool,
    tool_command,
    with_list_of,
)
from tests.counterparts.logins import Login, Tls
from tests.counterparts.wire_client import WireClient
from tests.interop import refused_kafka_python
from tests.interop.login_clients import (
    ALERT,
    CLIENTS,
    COMMITTED_VALUE,
    LET_IN,
    WRITTEN,
    ConfluentKafka,
    KafkaConsole,
    alert_in,
)
from tests.interop.recorded_kafka import IS_LIVE
from tests.interop.secured import (
    MECHANISMS,
    SUPER_USER,
    USERS,
    SecuredBarnabas,
    SecuredBroker,
    SecuredKafka,
    rights,
    store,
)
from tests.interop.test_logins_like_kafka import create_scram_users, logs_in
from tests.issuer import rsa_key, token
from tests.products import case
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

DAY_S = 24 * 60 * 60
"""A token's lifetime: it is issued before all tests, however long those take."""

PASSWORD = USERS["alice"]
GOOD = {
    "PLAIN": Login("PLAIN", "alice", PASSWORD),
    "SCRAM-SHA-256": Login("SCRAM-SHA-256", "scram", "secret"),
    "SCRAM-SHA-512": Login("SCRAM-SHA-512", "scram", "secret"),
    "OAUTHBEARER": Login("OAUTHBEARER", "alice", token=token(lifetime_s=DAY_S)),
}
BAD = {
    "PLAIN": Login("PLAIN", "alice", "wrong"),
    "PLAIN of nobody": Login("PLAIN", "nobody", "wrong"),
    "SCRAM-SHA-256": Login("SCRAM-SHA-256", "scram", "wrong"),
    "SCRAM-SHA-256 of nobody": Login("SCRAM-SHA-256", "nobody", "wrong"),
    "SCRAM-SHA-512": Login("SCRAM-SHA-512", "scram", "wrong"),
    "OAUTHBEARER": Login(
        "OAUTHBEARER", "alice", token=token(key=rsa_key("mine"), lifetime_s=DAY_S)
    ),
}
# See login_clients.Kcat.
KCAT_CANNOT = {"SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}


class Case(NamedTuple):
    """A way to a listener: with which login, whom the client trusts, which certificate it has."""

    listener: str
    login: Login = Login()
    trusted: str = ""
    own: str = ""


WAYS = {
    "PLAINTEXT": Case("PLAINTEXT"),
    "SSL": Case("TLS", trusted="trusted"),
    "SSL with a certificate": Case("MTLS", trusted="trusted", own="alice"),
    **{f"SASL_PLAINTEXT {each}": Case("SASL", GOOD[each]) for each in MECHANISMS},
    **{f"SASL_SSL {each}": Case("SECURE", GOOD[each], "trusted") for each in MECHANISMS},
}
REFUSED = {
    **{f"SASL_PLAINTEXT {each}": Case("SASL", login) for each, login in BAD.items()},
    **{f"SASL_SSL {each}": Case("SECURE", BAD[each], "trusted") for each in MECHANISMS},
    "a broker of somebody else's": Case("TLS", trusted="strange"),
    "a broker's certificate has expired": Case("EXPIRED", trusted="trusted"),
    "a broker's certificate is for another host": Case("ELSEWHERE", trusted="trusted"),
    "no certificate": Case("MTLS", trusted="trusted"),
    "a certificate of somebody else's": Case("MTLS", trusted="trusted", own="stranger"),
    "a certificate that has expired": Case("MTLS", trusted="trusted", own="expired"),
}

ALERTS = {
    "no certificate": "certificate required",
    "a certificate of somebody else's": "unknown ca",
    "a certificate that has expired": "certificate expired",
}


class World(NamedTuple):
    """Barnabas, and what clients need to log in there, and at Apache Kafka."""

    ours: SecuredBroker
    authority: Authority
    files: Path

    def login(self, case: Case) -> Login:
        """The login of a case, with the files that it names."""
        if not case.trusted:
            return case.login
        own = str(self.files / f"{case.own}.pem") if case.own else ""
        return replace(case.login, tls=Tls(str(self.files / f"{case.trusted}.pem"), own))


def prepared(broker: SecuredBroker) -> SecuredBroker:
    """Create the users and the permissions of a broker."""
    create_scram_users(broker)
    with WireClient(broker) as client:
        add_acls(client, [*rights("alice"), *rights("scram"), *rights("carol")])
    return broker


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("clients")
    authority, stranger = Authority(), Authority("CN=Stranger CA")
    (directory / "trusted.pem").write_text(authority.root_pem)
    (directory / "strange.pem").write_text(stranger.root_pem)
    for name, credential in (
        ("alice", authority.issue("CN=alice,O=Barn")),
        ("expired", authority.issue("CN=alice,O=Barn", begins=-2 * DAY, ends=-DAY)),
        ("stranger", stranger.issue("CN=alice,O=Barn")),
    ):
        store(directory / f"{name}.pem", credential)
    with SecuredBarnabas(directory / "ours", authority) as ours:
        yield World(prepared(ours), authority, directory)


@pytest.fixture(scope="module")
def live_kafka(world, tmp_path_factory) -> Iterator[SecuredBroker]:
    with SecuredKafka(tmp_path_factory.mktemp("theirs"), world.authority) as running:
        yield prepared(running)


def cannot_use(case: Case) -> bool:
    """Whether kcat cannot log in in this way."""
    return case.login.mechanism in KCAT_CANNOT


def ways_of_clients() -> Iterator[object]:
    """Yield each client with each way; in `make test` one of the protocols with each mechanism."""
    for number, client in enumerate(CLIENTS):
        for way, case_ in WAYS.items():
            mechanism = case_.login.mechanism
            if client == "kcat" and cannot_use(case_):
                continue
            is_secure = case_.listener == "SECURE"
            in_test = not mechanism or is_secure == (number + MECHANISMS.index(mechanism)) % 2
            yield case(client, way, in_test=in_test)


@pytest.mark.parametrize(("client", "way"), [*ways_of_clients()])
def test_authenticated_client_writes_reads_and_has_transactions(
    world, client, way, topic, tmp_path
):
    """By every protocol and mechanism, with no more rights than that takes."""
    case, using = WAYS[way], CLIENTS[client]
    login = world.login(case)
    servers = world.ours.servers(case.listener)
    using.write(servers, login, topic, tmp_path)
    expected = [WRITTEN, COMMITTED_VALUE] if using.has_transactions else [WRITTEN]
    assert using.read(servers, login, topic, len(expected), tmp_path) == expected


@pytest.mark.parametrize("way", [way for way, each in WAYS.items() if cannot_use(each)])
def test_kcat_with_old_librdkafka_is_refused_by_both(world, kafka, way, tmp_path):
    """Some mechanisms of the system's librdkafka are refused: see login_clients.Kcat."""

    def refusal(broker: SecuredBroker) -> str:
        servers = broker.servers(WAYS[way].listener)
        return CLIENTS["kcat"].refusal(servers, world.login(WAYS[way]), tmp_path)

    said = [refusal(world.ours), kafka.observe(f"kcat, {way}", refusal)]
    assert [each for each in said if "SASL authentication error" not in each] == []


def refusals_of_clients() -> Iterator[object]:
    """Yield each client with each refusal; in `make test` each refusal with the next client.

    The alerts about certificates also with one that shows their names.
    """
    turns = itertools.cycle(CLIENTS)
    for name, case_ in REFUSED.items():
        able = [each for each in CLIENTS if each != "kcat" or not cannot_use(case_)]
        chosen = {next(each for each in turns if each in able)}
        if name in ALERTS:
            chosen.add(ConfluentKafka.name)
        for client in CLIENTS:
            yield case(client, name, in_test=client in chosen)


# kafka-python leaves connections behind that ended in the middle of a handshake.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("client", "name"), [*refusals_of_clients()])
def test_refused_login_gets_the_error_of_kafka(world, kafka, client, name, tmp_path):
    """The name of the alert for a refused certificate may differ: Java's are less exact."""
    case = REFUSED[name]

    def refusal(broker: SecuredBroker) -> str:
        directory = tmp_path / broker.directory.name
        directory.mkdir()
        servers = broker.servers(case.listener)
        return CLIENTS[client].refusal(servers, world.login(case), directory)

    ours, theirs = refusal(world.ours), kafka.observe(f"{client}, {name}", refusal)
    if not IS_LIVE and client != KafkaConsole.name:
        # Other versions of the client than the recorded one word what they add otherwise.
        assert words_of_broker(ours) == words_of_broker(theirs)
    else:
        assert ALERT.sub("alert", ours) == ALERT.sub("alert", theirs)
    assert ours != LET_IN
    if name in ALERTS and client not in {"kafka-python", "aiokafka"}:
        assert alert_in(ours) == ALERTS[name]
        assert alert_in(theirs) in {"bad certificate", "certificate unknown"}


def words_of_broker(said: str) -> str:
    """Return the part of a refusal that a client has from the broker."""
    if found := re.search(r"SASL authentication error: (.*?) \(after", said):
        return found[1]
    return "alert" if ALERT.search(said) else "words of the client"


REASON = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize("client", ["confluent-kafka", "Java"])
def test_failed_login_shows_its_reason(world, client, tmp_path):
    servers = world.ours.servers("SASL")
    assert REASON in CLIENTS[client].refusal(servers, BAD["PLAIN"], tmp_path)


def test_kafka_python_logs_the_reason_of_each_failed_login(world):
    """kafka-python gives no reason for a lost connection if the broker closes first."""
    losses = refused_kafka_python.logged_losses(world.ours.servers("SASL"), BAD["PLAIN"])
    assert [line for line in losses if REASON in line]
    assert [line for line in losses if "disconnected" in line.partition("Connection lost")[2]] == []


# ---------------------------------------------------------------------------- users by Kafka's tool


def configs(broker: SecuredBroker, file: Path, *arguments: str) -> str:
    result = run_tool(
        CONFIGS,
        *("--bootstrap-server", broker.servers(), "--command-config", str(file)),
        *("--entity-type", "users", *arguments),
    )
    assert result.exit_code == 0, result.output
    return result.output.strip()


def test_users_by_kafka_configs(world, kafka, tmp_path):
    ours = users_by_configs(world.ours, tmp_path)
    theirs = kafka.observe("users", lambda broker: users_by_configs(broker, tmp_path))
    assert ours == theirs
    assert "SCRAM-SHA-256=iterations=8192" in ours[2]
    assert "SCRAM-SHA-512=iterations=4096" in ours[3]


def users_by_configs(broker: SecuredBroker, directory: Path) -> list[list[str]]:
    """Create a user by Kafka's tool, and delete a credential; return the output of each step."""
    file, _ = KafkaConsole().settings(Login("PLAIN", SUPER_USER, USERS[SUPER_USER]), directory)
    carol = ("--entity-name", "carol")
    password = "SCRAM-SHA-256=[iterations=8192,password=first],SCRAM-SHA-512=[password=first]"
    refused = run_tool(
        CONFIGS,
        *("--bootstrap-server", broker.servers(), "--command-config", str(file)),
        *("--entity-type", "users", *carol, "--alter", "--add-config", password),
    )
    assert "altered twice in the same request" in refused.output
    steps = [
        ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=first]"),
        ("--alter", "--add-config", "SCRAM-SHA-512=[password=first]"),
        ("--describe",),
    ]
    said = [sorted_words(configs(broker, file, *carol, *step)) for step in steps]
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        login = Login(mechanism, "carol", "first")
        ConfluentKafka().write(broker.servers(), login, f"by-carol-{mechanism}", directory)
    configs(broker, file, *carol, "--alter", "--delete-config", "SCRAM-SHA-256")
    # Apache Kafka's broker hears of that a moment after its controller has answered.
    wait_until(lambda: not logs_in(broker, "carol", "first"), "it is known")
    assert "SASL authentication error" in ConfluentKafka().refusal(
        broker.servers(), Login("SCRAM-SHA-256", "carol", "first"), directory
    )
    return [*said, sorted_words(configs(broker, file, *carol, "--describe"))]


def sorted_words(text: str) -> list[str]:
    """Make the mechanisms of a user come in one order; Apache Kafka has none."""
    return sorted(text.replace(",", " ").split())


ORDERS = ("--topic", "orders")
ADMINISTRATION = {
    "a user, over SSL": (
        *("TLS", CONFIGS, "--entity-type", "users", "--entity-name", SUPER_USER, "--alter"),
        *("--add-config", "SCRAM-SHA-512=[iterations=4096,password=by-tool]"),
    ),
    "a right": ("SECURE", ACLS, "--add", "--allow-principal", "User:dan", "--producer", *ORDERS),
    "a quota": (
        *("SECURE", CONFIGS, "--entity-type", "users", "--entity-name", "dan", "--alter"),
        *("--add-config", "producer_byte_rate=1048576"),
    ),
    "the right": ("SECURE", ACLS, "--list", *ORDERS),
    "the quota": (
        "SECURE",
        CONFIGS,
        "--entity-type",
        "users",
        "--entity-name",
        "dan",
        "--describe",
    ),
    "no right any more": ("SECURE", ACLS, "--remove", "--force", *ORDERS),
}


def test_users_rights_and_quotas_by_kafkas_tools_over_tls(world, kafka, tmp_path):
    """A user that a tool created over SSL does the rest, by SCRAM over SASL_SSL."""
    ours = administered(world, world.ours, tmp_path)
    theirs = kafka.observe("by tools", lambda broker: administered(world, broker, tmp_path))
    assert ours == theirs
    assert "operation=WRITE" in ours["the right"]
    assert "producer_byte_rate=1048576.0" in ours["the quota"]


def administered(world: World, broker: SecuredBroker, directory: Path) -> dict[str, list[str]]:
    """Run each of Kafka's tools about a broker; return their output."""
    logins = {"TLS": Login(), "SECURE": Login("SCRAM-SHA-512", SUPER_USER, "by-tool")}

    def run(name: str) -> str:
        listener, tool, *arguments = ADMINISTRATION[name]
        login = world.login(Case(listener, logins[listener], "trusted"))
        file, _ = KafkaConsole().settings(login, directory)
        servers = ("--bootstrap-server", broker.servers(listener))
        found = run_tool(tool, *servers, "--command-config", str(file), *arguments)
        assert found.exit_code == 0, (name, found.output)
        return found.output

    outputs = {}
    for name, (_, tool, *arguments) in ADMINISTRATION.items():
        output = run(name)
        is_change = tool == ACLS and "--list" not in arguments
        outputs[name] = sorted_words(with_list_of(run(name), output) if is_change else output)
    return outputs


# ----------------------------------------------------------------- logins that end and are repeated

LIFETIME_S = 2
"""The session lifetime that clients receive."""
HOLDS_S = 120
"""Longer than a client is late on the busiest machine. That a session ends when it is said to is
shown in test_logins_like_kafka.py."""


@pytest.fixture
def ending(tmp_path) -> Iterator[Broker]:
    """A broker in this process, whose logins end."""
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "barnabas.scram.credentials": "SCRAM-SHA-256=[name=scram,password=secret]",
        "connections.max.reauth.ms": str(HOLDS_S * 1000),
    }
    with Broker(config=settings, storage=tmp_path / "data") as broker:
        broker.create_topic("t")
        yield broker


class Feeder:
    """Writes a number twice a second through one producer, whose logins end as well."""

    def __init__(self, broker: Broker) -> None:
        settings = ConfluentKafka().settings(broker.bootstrap_servers, GOOD["SCRAM-SHA-256"])
        self.errors: list[str] = []
        self._producer = confluent_kafka.Producer(
            settings | {"error_cb": lambda error: self.errors.append(str(error))}
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(0.5):
            self._producer.produce("t", str(number).encode())
            self._producer.poll(0)
            number += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


def handshakes(broker: Broker) -> int:
    routes = broker.server.routes
    return next(route.requests for route in routes if route.name == "SaslHandshake")


def connections(broker: Broker) -> int:
    return int(scrape(broker)("barnabas_connections_accepted_total"))


def test_java_and_librdkafka_log_in_again_on_the_same_connections(ending, tmp_path, caplog):
    """For four lifetimes no connection is closed, no record is lost, and no client reconnects.

    The responses to the clients' logins have a lifetime of two seconds.
    """
    log_in = next(each for each in ending.server.routes if each.name == "SaslAuthenticate").handler

    def shortly(context: object, request: object) -> object:
        answer = log_in(context, request)
        if isinstance(answer, SaslAuthenticateResponse) and answer.session_lifetime_ms:
            assert answer.session_lifetime_ms <= HOLDS_S * 1000
            answer.session_lifetime_ms = LIFETIME_S * 1000
        return answer

    count = 4 * LIFETIME_S * 2
    file, _ = KafkaConsole().settings(GOOD["SCRAM-SHA-256"], tmp_path)
    command = tool_command(
        CONSOLE_CONSUMER,
        *("--bootstrap-server", ending.bootstrap_servers, "--command-config", str(file)),
        *("--topic", "t", "--from-beginning", "--max-messages", str(count)),
    )
    with (
        ending.intercept(SASL_AUTHENTICATE, answer=shortly),
        ending.intercept(FETCH) as fetched,
        ending.intercept(PRODUCE) as produced,
        subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True) as java,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(java.kill)  # Of one that has ended nothing comes.
        # Then it has all of its connections; and so has the producer that has written.
        wait_until(lambda: fetched.count, "Java reads", seconds=120)
        with Feeder(ending) as feeder:
            wait_until(lambda: produced.count, "librdkafka writes")
            connected = connections(ending)
            output, errors = java.communicate(timeout=300)
            assert connections(ending) == connected
    assert output.split() == [str(number) for number in range(count)], errors
    assert feeder.errors == []
    assert handshakes(ending) >= 3 * connected
    assert "login does not hold" not in caplog.text


def test_a_client_that_cannot_log_in_again_is_cut_off(ending):
    """The client's user is deleted: the session ends at once, and no other starts."""
    settings = ConfluentKafka().settings(ending.bootstrap_servers, GOOD["SCRAM-SHA-256"])
    heard: list[int] = []
    producer = confluent_kafka.Producer(
        settings | {"error_cb": lambda error: heard.append(error.code())}
    )
    producer.produce("t", b"before")
    assert producer.flush(60) == 0

    with Wire(ending) as admin:
        admin.log_in_with_scram("scram", "secret")
        request = AlterUserScramCredentialsRequest([ScramCredentialDeletion("scram", 1)], [])
        (result,) = admin.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request).results
        assert result.error_code == 0
    denied = confluent_kafka.KafkaError._AUTHENTICATION
    wait_until(lambda: producer.poll(0.1) or denied in heard, "it is cut off")
