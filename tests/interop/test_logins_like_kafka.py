"""Logins step by step over raw sockets, by every mechanism: our answers are Apache Kafka's.

Each case is a connection of its own. What it yields is compared, words of failures included; a
connection that is closed without an answer yields "closed". Cases that differ are listed in
``ON_PURPOSE`` with the reason, and in docs/security/reference.md.
"""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from barnabas.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.create_topics import CREATE_TOPICS, CreateTopicsRequest
from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.protocol.messages.fetch import FETCH, FetchRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE, ProduceRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.protocol.sasl.scram import MECHANISMS, ScramClient, salted_password
from tests.broker.security.wire import Wire
from tests.interop.comparison import check_equal
from tests.interop.recorded_kafka import Barnabas
from tests.interop.secured import LIFETIME_MS, USERS, SecuredBroker, SecuredKafka
from tests.issuer import rsa_key, token, unsigned
from tests.waiting import WAIT_S, wait_until

PASSWORD = USERS["alice"]
PLAIN_TOKEN = f"\0alice\0{PASSWORD}".encode()
CLOSED = "closed"

Case = Callable[["Client"], Iterator[Any]]

ON_PURPOSE = {
    "SCRAM-SHA-256 of nobody": "Kafka refuses the first message: that shows who is a user",
    "SCRAM-SHA-512 of nobody": "likewise",
    "SCRAM with an extension that is not proved": "Kafka leaves extensions out of what is proved; "
    "RFC 5802 has them in it",
    "SCRAM with a name beyond ASCII": "Kafka reads no such names, although it stores them",
    "a token after one that does not hold": "Kafka takes it; here the exchange is over",
    "OAUTHBEARER of another scheme": "Kafka closes without a word; 58 is what a client can tell",
    "again in another way": "likewise",
    "again in an unknown way": "Kafka closes without a word; 33 is what a client can tell",
    "again as somebody else, by a guess": "Kafka says whether the password is right",
    "PLAIN that is not UTF-8": "Kafka reads it as some other name",
}


class Client:
    """A connection to one listener; answers as plain data."""

    def __init__(self, broker: SecuredBroker, listener: str) -> None:
        self.broker = broker
        self.wire = Wire(None, broker.address(listener))
        self.is_late = False
        """Whether more time has passed than the case allows for."""

    def ask(self, api: Any, version: int, request: Any) -> Any:
        return self.plain(self.wire.ask(api, version, request))

    def plain(self, answer: Any) -> Any:
        """Return an answer as far as two brokers agree, or that there is none."""
        if answer is None:
            return CLOSED
        name = type(answer).__name__.removesuffix("Response")
        if name == "SaslHandshake":
            return name, answer.error_code, sorted(answer.mechanisms)
        if name == "SaslAuthenticate":
            seconds = -(-answer.session_lifetime_ms // 1000)
            return name, answer.error_code, answer.error_message, bytes(answer.auth_bytes), seconds
        if name == "ApiVersions":
            ranges = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
            return name, answer.error_code, ranges.get(17), ranges.get(18), ranges.get(36)
        return name, codes_of(answer)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))

    def authenticate(self, token: bytes = PLAIN_TOKEN, version: int = 2) -> Any:
        return self.ask(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))

    def bare(self, token: bytes) -> Any:
        try:
            found = self.wire.bare(token)
        except ConnectionResetError:
            found = None
        return CLOSED if found is None else found

    def is_served(self) -> Any:
        """Whether the connection serves a client that has logged in."""
        return self.ask(DESCRIBE_CLUSTER, 0, DescribeClusterRequest())

    def is_closed(self) -> Any:
        return CLOSED if self.wire.is_closed else "open"


def codes_of(answer: Any) -> Any:
    """Return every error code in an answer."""
    found = []
    for name in answer.__slots__ if hasattr(answer, "__slots__") else ():
        value = getattr(answer, name)
        if name == "error_code":
            found.append(int(value))
        elif isinstance(value, list):
            found.extend(code for each in value for code in codes_of(each))
    return found


# ------------------------------------------------------------------------------------- the states

VERSIONS = ApiVersionsRequest("test", "1")


def versions_twice(client: Client) -> Iterator[Any]:
    yield client.ask(API_VERSIONS, 3, VERSIONS)
    yield client.ask(API_VERSIONS, 3, VERSIONS)


def versions_of_the_future(client: Client) -> Iterator[Any]:
    for _ in range(2):
        frame = struct.pack(">hhihB", 18, 99, 7, -1, 0)  # as clients have it from v3 on
        client.wire.socket.sendall(struct.pack(">i", len(frame)) + frame)
        size = struct.unpack(">i", client.wire.socket.recv(4))[0]
        yield client.wire.socket.recv(size)[4:6]
    yield client.ask(API_VERSIONS, 3, VERSIONS)
    yield client.handshake()


def versions_and_login(client: Client) -> Iterator[Any]:
    yield client.ask(API_VERSIONS, 3, VERSIONS)
    yield client.handshake()
    yield client.authenticate()
    yield client.is_served()
    yield client.ask(API_VERSIONS, 3, VERSIONS)
    yield client.ask(API_VERSIONS, 3, VERSIONS)


def unknown_mechanism(name: str) -> Case:
    def case(client: Client) -> Iterator[Any]:
        yield client.handshake(name)
        yield client.is_closed()

    return case


REQUESTS: dict[str, tuple[Any, int, Any]] = {
    "ApiVersions": (API_VERSIONS, 3, VERSIONS),
    "SaslHandshake": (SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")),
    "SaslAuthenticate": (SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(PLAIN_TOKEN)),
    "Metadata": (METADATA, 9, MetadataRequest([])),
    "Produce": (PRODUCE, 9, ProduceRequest(None, 1, 1000, [])),
    "Fetch": (FETCH, 12, FetchRequest()),
    "FindCoordinator": (FIND_COORDINATOR, 3, FindCoordinatorRequest("g")),
    "Heartbeat": (HEARTBEAT, 4, HeartbeatRequest("g", 1, "m")),
    "ListGroups": (LIST_GROUPS, 4, ListGroupsRequest()),
    "InitProducerId": (INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 1000)),
    "CreateTopics": (CREATE_TOPICS, 7, CreateTopicsRequest([], 1000)),
    "DescribeCluster": (DESCRIBE_CLUSTER, 0, DescribeClusterRequest()),
}


def first(name: str) -> Case:
    """A request before anything else."""

    def case(client: Client) -> Iterator[Any]:
        yield client.ask(*REQUESTS[name])

    return case


def in_the_middle(name: str) -> Case:
    """A request between the handshake and the token."""

    def case(client: Client) -> Iterator[Any]:
        yield client.handshake()
        yield client.ask(*REQUESTS[name])
        yield client.authenticate()

    return case


def afterwards(client: Client) -> Iterator[Any]:
    """Another login where logins do not end."""
    yield client.handshake()
    yield client.authenticate()
    yield client.authenticate()
    yield client.handshake()
    yield client.handshake("NONE")
    yield client.authenticate(b"")
    yield client.is_served()


def without_login(client: Client) -> Iterator[Any]:
    """SASL on a listener without authentication."""
    yield client.handshake()
    yield client.authenticate()
    yield client.is_served()


def each_version(version: int) -> Case:
    def case(client: Client) -> Iterator[Any]:
        yield client.handshake()
        yield client.authenticate(version=version)
        yield client.is_served()

    return case


def too_long(size: int) -> Case:
    def case(client: Client) -> Iterator[Any]:
        client.wire.socket.sendall(struct.pack(">i", size))
        yield client.is_closed()

    return case


def long_afterwards(client: Client) -> Iterator[Any]:
    """A frame that is too long before the login is not after it."""
    yield client.handshake()
    yield client.authenticate()
    names = [f"{'x' * 240}{number}" for number in range(2500)]
    yield client.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest("", 0, names))[0]


def pipelined(token: bytes) -> Case:
    """A request that is sent behind the last token, before its answer."""

    def case(client: Client) -> Iterator[Any]:
        yield client.handshake()
        client.wire.send(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(token))
        client.wire.send(DESCRIBE_CLUSTER, 0, DescribeClusterRequest())
        yield client.plain(client.wire.receive())
        yield client.plain(client.wire.receive())

    return case


STATES: dict[str, Case] = {
    "ApiVersions twice": versions_twice,
    "ApiVersions of an unknown version": versions_of_the_future,
    "ApiVersions and a login": versions_and_login,
    "a login where none is asked for": without_login,
    "another login": afterwards,
    "a long request after the login": long_afterwards,
    "a request behind the last token": pipelined(PLAIN_TOKEN),
    "a request behind a wrong token": pipelined(b"\0alice\0wrong"),
    **{f"the mechanism {name!r}": unknown_mechanism(name) for name in ("GSSAPI", "plain", "", "X")},
    **{f"first {name}": first(name) for name in REQUESTS},
    **{f"{name} in the middle": in_the_middle(name) for name in REQUESTS},
    **{f"SaslAuthenticate v{version}": each_version(version) for version in range(3)},
    **{f"a frame of {size}": too_long(size) for size in (524_289, 2**31 - 1, -1, -(2**31))},
}

# ------------------------------------------------------------------------------------------- PLAIN


def plain(token: bytes) -> Case:
    def case(client: Client) -> Iterator[Any]:
        yield client.handshake("PLAIN")
        yield client.authenticate(token)
        yield client.is_served()

    return case


def plain_bare(token: bytes) -> Case:
    def case(client: Client) -> Iterator[Any]:
        yield client.handshake("PLAIN", 0)
        yield client.bare(token)
        yield client.is_served()

    return case


PLAIN_TOKENS = {
    "PLAIN": PLAIN_TOKEN,
    "PLAIN with the user twice": b"alice" + PLAIN_TOKEN,
    "PLAIN as somebody else": b"bob" + PLAIN_TOKEN,
    "PLAIN as somebody else with a wrong password": b"bob\0alice\0wrong",
    "PLAIN with a wrong password": b"\0alice\0wrong",
    "PLAIN of nobody": b"\0nobody\0secret",
    "PLAIN without a user": b"\0\0secret",
    "PLAIN without a password": b"\0alice\0",
    "PLAIN of nothing": b"",
    "PLAIN of one part": b"alice",
    "PLAIN of two parts": b"alice\0secret",
    "PLAIN of four parts": b"\0alice\0secret\0",
    "PLAIN that is not UTF-8": b"\0alice\0\xff",
    "PLAIN in another case": f"\0Alice\0{PASSWORD}".encode(),
    "PLAIN that is long": b"\0alice\0" + b"x" * 100_000,
}

# ------------------------------------------------------------------------------------------- SCRAM


def scram(
    user: str = "scram",
    password: str = "secret",
    mechanism: str = "SCRAM-SHA-256",
    change: tuple[str, str] = ("", ""),
    version: int = 1,
) -> Case:
    """A whole login; ``change`` is made in the final message."""

    def case(client: Client) -> Iterator[Any]:
        asked = ScramClient(MECHANISMS[mechanism], user, password, "client-nonce")
        send = client.authenticate if version else client.bare
        yield client.handshake(mechanism, version)
        answer = send(asked.first())
        if isinstance(answer, tuple) and answer[1] == 0:
            answer = answer[3]
        if not isinstance(answer, bytes):
            yield answer
            return
        nonce, salt, iterations = answer.split(b",")
        # Base 36, of the same length within two.
        yield nonce[:14], len(base64.b64decode(salt[2:])) in range(20, 27), iterations
        final = asked.step(answer)
        assert final is not None
        last = send(final.decode().replace(*change).encode() if change[0] else final)
        signature = last[3] if isinstance(last, tuple) and last[1] == 0 else last
        if isinstance(signature, bytes):
            asked.step(signature)
            last = "the server knows the credential"
        yield last
        yield client.is_served()

    return case


def scram_first(message: str) -> Case:
    """A first message alone; whether it is taken."""

    def case(client: Client) -> Iterator[Any]:
        yield client.handshake("SCRAM-SHA-256")
        answer = client.authenticate(message.encode())
        yield answer if answer == CLOSED else answer[1:3]

    return case


SCRAM_LOGINS: dict[str, Case] = {
    "SCRAM-SHA-256": scram(),
    "SCRAM-SHA-512": scram(mechanism="SCRAM-SHA-512"),
    "SCRAM with bare tokens": scram(version=0),
    "SCRAM with bare tokens and a wrong password": scram(password="wrong", version=0),
    "SCRAM of a name with = and ,": scram("a=b,c"),
    "SCRAM with a name beyond ASCII": scram("Zoë"),
    "SCRAM-SHA-256 with a wrong password": scram(password="wrong"),
    "SCRAM-SHA-512 with a wrong password": scram(password="wrong", mechanism="SCRAM-SHA-512"),
    "SCRAM-SHA-256 of nobody": scram("nobody"),
    "SCRAM-SHA-512 of nobody": scram("nobody", mechanism="SCRAM-SHA-512"),
    "SCRAM with a nonce cut short": scram(change=("r=client-nonce", "r=client-nonc")),
    "SCRAM with another nonce": scram(change=(",p=", "x,p=")),
    "SCRAM with an extension that is not proved": scram(change=(",p=", ",x=y,p=")),
    "SCRAM with another header in the end": scram(change=("c=biws", "c=eSws")),
    "SCRAM without a header in the end": scram(change=("c=biws", "")),
    "SCRAM without a proof": scram(change=(",p=", ",q=")),
}

SCRAM_FIRSTS = (
    "n,,n=scram,r=nonce",
    "n,a=scram,n=scram,r=nonce",
    "n,a=bob,n=scram,r=nonce",
    "y,,n=scram,r=nonce",
    "p=tls-unique,,n=scram,r=nonce",
    "n,,m=x,n=scram,r=nonce",
    "n,,n=scram,r=nonce,a=b,c=d",
    "n,,n=scram,r=nonce,1=b",
    "n,,n=scram,r=nonce,",
    "n,,n=scram,r=",
    "n,,n=scram,r=a b",
    "n,,n=,r=nonce",
    "n,,n=sc=ram,r=nonce",
    "n,,n=sc=2cram,r=nonce",
    "n,,r=nonce,n=scram",
    "n=scram,r=nonce",
    "n,n=scram,r=nonce",
    " n,,n=scram,r=nonce",
    "n,,n=scram,r=nonce\n",
    "nonsense",
    "",
)

# ------------------------------------------------------------------------------------- OAUTHBEARER


def oauth(message: bytes, then: bytes | None = None, version: int = 1) -> Case:
    def case(client: Client) -> Iterator[Any]:
        yield client.handshake("OAUTHBEARER", version)
        send = client.authenticate if version else client.bare
        found = send(message)
        yield found[:4] if isinstance(found, tuple) else found
        if then is not None:
            found = send(then)
            yield found[:4] if isinstance(found, tuple) else found
        yield client.is_served()

    return case


def bearer(text: str, header: str = "n,,", scheme: str = "Bearer", rest: str = "") -> bytes:
    return f"{header}\1auth={scheme} {text}\1{rest}\1".encode()


def oauth_logins() -> dict[str, Case]:
    good = token()
    bad = {
        "without a signature": unsigned(),
        "of another key": token(key=rsa_key("mine")),
        "of an unknown key": token(key_id="nobody's"),
        "that has expired": token(lifetime_s=-1000),
        "without an end": token(exp=None),
        "without a beginning": token(iat=None),
        "of the future": token(iat=int(time.time()) + 1000),
        "that does not hold yet": token(nbf=int(time.time()) + 1000),
        "of another issuer": token(iss="https://else.example"),
        "without an issuer": token(iss=None),
        "for another audience": token(aud="else"),
        "without an audience": token(aud=None),
        "of nobody": token(sub=None),
        "of an empty name": token(sub=" "),
        "with a scope twice": token(scope=["a", "a"]),
        "with an empty scope": token(scope=["a", ""]),
        "with critical extensions": token(headers={"crit": ["x"], "x": 1}),
        "that is none": "a.b.c",
        "of one part": "abc",
    }
    return {
        "OAUTHBEARER": oauth(bearer(good)),
        "OAUTHBEARER with bare tokens": oauth(bearer(good), version=0),
        "OAUTHBEARER with bare tokens and a bad one": oauth(bearer(bad["of nobody"]), b"\1", 0),
        "OAUTHBEARER as the user": oauth(bearer(good, "n,a=alice,")),
        "OAUTHBEARER as somebody else": oauth(bearer(good, "n,a=bob,")),
        "OAUTHBEARER in small letters": oauth(bearer(good, scheme="bearer")),
        "OAUTHBEARER with extensions": oauth(bearer(good, rest="host=x\1port=1\1")),
        "OAUTHBEARER with a bad extension": oauth(bearer(good, rest="1=x\1")),
        "OAUTHBEARER with y": oauth(bearer(good, "y,,")),
        "OAUTHBEARER of another scheme": oauth(bearer(good, scheme="Basic")),
        "OAUTHBEARER of nothing": oauth(b""),
        "OAUTHBEARER without a token": oauth(b"n,,\1\1"),
        "OAUTHBEARER that is acknowledged only": oauth(b"\1"),
        "a token after one that does not hold": oauth(bearer(unsigned()), bearer(good)),
        **{
            f"a token by {algorithm}": oauth(bearer(token(algorithm=algorithm)))
            for algorithm in ("RS256", "PS256", "ES256", "EdDSA")
        },
        "a token without a key id": oauth(bearer(token(key_id=None))),
        "a token for several audiences": oauth(bearer(token(aud=["else", "brokers"]))),
        "a token with scopes": oauth(bearer(token(scope=["a", "b"]))),
        **{f"a token {what}": oauth(bearer(text), b"\1") for what, text in bad.items()},
    }


# ----------------------------------------------------------------- KIP-368, on LASTING and REAUTH


def again(*steps: str, version: int = 1) -> Case:
    """A login and what ``steps`` say; "wait": until the login has ended, which it had not before;
    "at once": all of that within the second in which Apache Kafka takes no third login.
    """

    def case(client: Client) -> Iterator[Any]:
        begun_s = time.monotonic()
        yield client.handshake(version=version)
        yield client.authenticate() if version else client.bare(PLAIN_TOKEN)
        for step in steps:
            match step.split():
                case ["at", "once"]:
                    client.is_late = time.monotonic() - begun_s > AT_ONCE_S
                case ["wait"]:
                    client.is_late = time.monotonic() - begun_s > LIFETIME_MS / 1000
                    client.broker.let_pass(LIFETIME_MS / 1000 + 0.3)
                case ["pause"]:
                    client.broker.let_pass(1.1)
                case ["handshake", mechanism]:
                    yield client.handshake(mechanism)
                case ["token"]:
                    yield client.authenticate()
                case ["bob"]:
                    yield client.authenticate(f"\0bob\0{USERS['bob']}".encode())
                case ["guess"]:
                    yield client.authenticate(b"\0bob\0guess")
                case ["wrong"]:
                    yield client.authenticate(b"\0alice\0wrong")
                case ["ask", name]:
                    yield client.ask(*REQUESTS[name])
                case _:
                    raise AssertionError(step)

    return case


LOGIN_AGAIN = ("handshake PLAIN", "token")
AT_ONCE_S = 0.9
TOGETHER = 8
"""Cases that run at a time: brokers delay the response to a failed login."""
REPEATED: dict[str, Case] = {
    "again": again(*LOGIN_AGAIN, "ask DescribeCluster"),
    "again and again": again(*LOGIN_AGAIN, "pause", *LOGIN_AGAIN, "ask DescribeCluster"),
    "again and again at once": again(*LOGIN_AGAIN, *LOGIN_AGAIN, "at once", "ask DescribeCluster"),
    "again as somebody else": again("handshake PLAIN", "bob", "ask DescribeCluster"),
    "again as somebody else, by a guess": again("handshake PLAIN", "guess"),
    "again with a wrong password": again("handshake PLAIN", "wrong", "ask DescribeCluster"),
    "again in another way": again("handshake SCRAM-SHA-256", "token"),
    "again in an unknown way": again("handshake NONE", "token"),
    "again with a request in the middle": again("handshake PLAIN", "ask Metadata", "token"),
    "again with versions in the middle": again("handshake PLAIN", "ask ApiVersions", "token"),
    "again after the end": again("wait", *LOGIN_AGAIN, "ask DescribeCluster"),
    "a token after the end": again("wait", "token"),
    "versions after the end": again("wait", "ask ApiVersions"),
    "a request after the end": again("wait", "ask DescribeCluster"),
    "a request after the end of bare tokens": again("wait", "ask DescribeCluster", version=0),
    "again after bare tokens": again(*LOGIN_AGAIN, "ask DescribeCluster", version=0),
    "only a token, where logins end": again("token", "ask DescribeCluster"),
    "half of a login and the end": again("handshake PLAIN", "wait", "token", "ask DescribeCluster"),
}


FAMILIES: dict[str, Callable[[], dict[str, Case]]] = {
    "states": lambda: STATES,
    "PLAIN": lambda: {name: plain(each) for name, each in PLAIN_TOKENS.items()},
    "PLAIN, bare": lambda: {
        f"{name}, bare": plain_bare(each)
        for name, each in PLAIN_TOKENS.items()
        if "UTF-8" not in name
    },
    "SCRAM": lambda: SCRAM_LOGINS,
    "SCRAM, first messages": lambda: {repr(each): scram_first(each) for each in SCRAM_FIRSTS},
    "OAUTHBEARER": oauth_logins,
    "again": lambda: REPEATED,
}
LISTENERS = {
    "a login where none is asked for": "PLAINTEXT",
    # Only who waits for the end of a login is to be overtaken by it.
    **{name: "REAUTH" if "the end" in name else "LASTING" for name in REPEATED},
}


def answers(broker: SecuredBroker, cases: dict[str, Case]) -> dict[str, Any]:
    """Return the responses of each case; those that only wait for the broker wait together."""

    def answers_to(name: str) -> list[Any]:
        return answers_in_time(broker, LISTENERS.get(name, "SASL"), cases[name])

    with ThreadPoolExecutor(1 if cases is REPEATED else TOGETHER) as pool:
        return dict(zip(cases, pool.map(answers_to, cases), strict=True))


def answers_in_time(broker: SecuredBroker, listener: str, case: Case) -> list[Any]:
    """Return the responses of a case, repeated until it was as quick as its limit."""
    deadline = time.monotonic() + WAIT_S
    while True:
        client = Client(broker, listener)
        with client.wire:
            found = list(case(client))
        if not client.is_late:
            return found
        assert time.monotonic() < deadline, "there is no time for a few requests"


def create_scram_users(broker: SecuredBroker) -> None:
    """Make the users; Apache Kafka answers before all of it knows of them."""
    users = [("scram", 1), ("a=b,c", 1), ("Zoë", 1)]
    with Wire(None, broker.address("PLAINTEXT")) as wire:
        for each in (users, [("scram", 2)]):
            upsertions = []
            for name, number in each:
                mechanism = next(one for one in MECHANISMS.values() if one.number == number)
                salt = b"0123456789abcdefghijklmno"
                salted = salted_password(mechanism, "secret", salt, 4096)
                upsertions.append(ScramCredentialUpsertion(name, number, 4096, salt, salted))
            request = AlterUserScramCredentialsRequest([], upsertions)
            results = wire.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request).results
            assert [result.error_code for result in results] == [0] * len(each)
        wait_until(lambda: _knows(wire, "scram", 2), "the users are known")
    # The broker reports a user before it accepts the login, and learns of users in their order.
    wait_until(lambda: logs_in(broker, "scram", "secret", "SCRAM-SHA-512"), "the last one logs in")


def _knows(wire: Wire, name: str, credentials: int) -> bool:
    request = DescribeUserScramCredentialsRequest([UserName(name)])
    (found,) = wire.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request).results
    return len(found.credential_infos) == credentials


def logs_in(
    broker: SecuredBroker, name: str, password: str, mechanism: str = "SCRAM-SHA-256"
) -> bool:
    with Wire(None, broker.address()) as wire:
        _, last = wire.log_in_with_scram(name, password, mechanism)
        return last is not None and last.error_code == 0


class SecuredBarnabas(SecuredBroker, Barnabas):  # type: ignore[misc,valid-type]
    """Barnabas; like Apache Kafka, it responds to a failed login after 100 ms."""


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> Iterator[SecuredBroker]:
    with SecuredBarnabas(tmp_path_factory.mktemp("ours")) as broker:
        create_scram_users(broker)
        yield broker


@pytest.fixture(scope="module")
def live_kafka(tmp_path_factory) -> Iterator[SecuredBroker]:
    with SecuredKafka(tmp_path_factory.mktemp("theirs")) as broker:
        create_scram_users(broker)
        yield broker


@pytest.mark.parametrize("family", FAMILIES)
def test_logins_go_as_with_kafka(ours, kafka, family):
    cases = FAMILIES[family]()
    theirs = kafka.observe(family, lambda broker: answers(broker, cases))
    check_equal(answers(ours, cases), theirs, ON_PURPOSE)


def answer_to_deleted_user(broker: SecuredBroker) -> Any:
    """Return the error for a user who is deleted after the login; CLOSED without a response."""
    with Wire(None, broker.address("PLAINTEXT")) as admin, Wire(None, broker.address()) as wire:
        mechanism = MECHANISMS["SCRAM-SHA-256"]
        salted = salted_password(mechanism, "d", b"salt", 4096)
        upsertion = ScramCredentialUpsertion("doomed", 1, 4096, b"salt", salted)
        request = AlterUserScramCredentialsRequest([], [upsertion])
        admin.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        wait_until(lambda: logs_in(broker, "doomed", "d"), "it logs in")
        _, last = wire.log_in_with_scram("doomed", "d")
        assert last is not None
        assert last.error_code == 0
        request = AlterUserScramCredentialsRequest([ScramCredentialDeletion("doomed", 1)], [])
        admin.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        wait_until(lambda: not _knows(admin, "doomed", 1), "it is deleted")
        answer = wire.ask(DESCRIBE_CLUSTER, 0, DescribeClusterRequest())
        return CLOSED if answer is None else answer.error_code


def test_a_user_that_is_deleted(ours, kafka):
    """Kafka lets the session continue until it ends by itself; here it ends at once."""
    assert answer_to_deleted_user(ours) == CLOSED
    assert kafka.observe("a deleted user", answer_to_deleted_user) == 0
