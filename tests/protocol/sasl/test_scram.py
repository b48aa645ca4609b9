"""SCRAM: vectors of the RFCs, an independent client, Apache Kafka's grammar, and replays."""

import base64
import hashlib
import hmac

import pytest
from kafka.net.sasl.scram import ScramClient as KafkaPythonClient

from barnabas.protocol.sasl.exchange import Accepted, Challenge, SaslFailed
from barnabas.protocol.sasl.scram import (
    CLIENT_ITERATIONS_MAX,
    MECHANISMS,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramClient,
    ScramCredential,
    ScramMechanism,
    ScramServer,
    credential_of,
    salted_password,
)

SCRAM_SHA_1 = ScramMechanism("SCRAM-SHA-1", 0, "sha1", 20)
SALT = b"0123456789abcdef"
NOBODY = ScramCredential(b"made up salt 123", bytes(32), bytes(32), 4096)


def credential(mechanism, password="secret", salt=SALT, iterations=4096):
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_of(mechanism, salted, salt, iterations)


def server(mechanism=SCRAM_SHA_256, users=None, nonce="server+nonce"):
    users = {"alice": credential(mechanism)} if users is None else users
    return ScramServer(mechanism, lambda name: users.get(name, NOBODY), nonce)


def client(mechanism=SCRAM_SHA_256, user="alice", password="secret", nonce="client+nonce"):
    return ScramClient(mechanism, user, password, nonce)


def log_in(server, client):
    challenge = server.step(client.first())
    assert isinstance(challenge, Challenge)
    accepted = server.step(client.step(challenge.token))
    assert client.step(accepted.token) is None
    return accepted


# RFC 5802, section 5; RFC 7677, section 3: user "user", password "pencil".
VECTORS = {
    SCRAM_SHA_1: (
        "fyko+d2lbbFgONRv9qkxdawL",
        "3rfcNHYJY1ZVvWVs7j",
        "QSXCR+Q6sek8bf92",
        "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ),
    SCRAM_SHA_256: (
        "rOprNGfwEbeRWgbNEkqO",
        "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        "W22ZaJ0SNY7soEsUEjb6gQ==",
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
}


@pytest.mark.parametrize("mechanism", VECTORS, ids=lambda each: each.name)
def test_the_vectors_of_the_rfcs(mechanism):
    ours, theirs, salt, proof, signature = VECTORS[mechanism]
    users = {"user": credential(mechanism, "pencil", base64.b64decode(salt))}
    asked, answers = client(mechanism, "user", "pencil", ours), server(mechanism, users, theirs)
    assert asked.first() == f"n,,n=user,r={ours}".encode()
    challenge = answers.step(asked.first()).token
    assert challenge == f"r={ours}{theirs},s={salt},i=4096".encode()
    final = asked.step(challenge)
    assert final == f"c=biws,r={ours}{theirs},p={proof}".encode()
    assert answers.step(final) == Accepted(f"v={signature}".encode(), "user")
    assert asked.step(f"v={signature}".encode()) is None


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=lambda each: each.name)
def test_a_client_that_we_did_not_write_agrees(mechanism):
    theirs = KafkaPythonClient("alice", "secret", mechanism.name)
    answers = server(mechanism)
    theirs.process_server_first_message(answers.step(theirs.first_message()).token)
    accepted = answers.step(theirs.final_message())
    theirs.process_server_final_message(accepted.token)
    assert accepted.user == "alice"


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("name", ["alice", "a,b=c", "=2C", "=3D2C", ",,==", "Zoë", "user name"])
def test_every_name_comes_through(mechanism, name):
    users = {name: credential(mechanism)}
    assert log_in(server(mechanism, users), client(mechanism, name)).user == name


def test_wrong_passwords_and_unknown_users_fail_at_the_same_step_with_the_same_words():
    said = set()
    for name, password in (("alice", "wrong"), ("nobody", "secret")):
        answers, asked = server(), client(user=name, password=password)
        challenge = answers.step(asked.first())
        assert isinstance(challenge, Challenge)
        with pytest.raises(SaslFailed) as caught:
            answers.step(asked.step(challenge.token))
        said.add(str(caught.value))
        assert caught.value.user == name
    assert said == {SCRAM_SHA_256.failed}


def test_the_words_are_kafkas():
    assert SCRAM_SHA_512.failed == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-512"
    )


@pytest.mark.parametrize(
    "first",
    [
        b"n,,n=alice,r=nonce",
        b"n,a=alice,n=alice,r=nonce",
        b"n,,m=extension,n=alice,r=nonce",
        b"n,,n=alice,r=nonce,tokenauth=false,b=x=y",
    ],
)
def test_first_messages_that_kafka_takes(first):
    assert isinstance(server().step(first), Challenge)


@pytest.mark.parametrize(
    "first",
    [
        b"y,,n=alice,r=nonce",
        b"p=tls-unique,,n=alice,r=nonce",
        b"n,,n=,r=nonce",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=non ce",
        b"n,,n=al=ice,r=nonce",
        b"n,,n=al=2cice,r=nonce",
        b"n,,n=al\0ice,r=nonce",
        b"n,,n=alice,r=nonce,",
        b"n,,n=alice,r=nonce\n",
        b"n,,n=\xff,r=nonce",
        b"n=alice,r=nonce",
        b"n,,n=alice,r=nonce," + b"x=y," * 3000 + b"x=y",
        b"",
    ],
)
def test_first_messages_that_are_refused(first):
    with pytest.raises(SaslFailed, match="invalid credentials"):
        server().step(first)


@pytest.mark.parametrize("first", [b"n,a=bob,n=alice,r=nonce", b"n,a=bob,n=nobody,r=nonce"])
def test_nobody_acts_as_somebody_else_cve_2017_12610(first):
    with pytest.raises(SaslFailed, match="authorization id that is different from username"):
        server().step(first)


def finals():
    """A true final message, and wrong ones made of it."""
    answers, asked = server(), client()
    return answers, asked.step(answers.step(asked.first()).token).decode()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("r=client+nonceserver+nonce", "r=client+nonce"),  # CVE-2024-56128
        ("r=client+nonceserver+nonce", "r=client+nonceserver+nonce2"),
        ("c=biws", "c=eSws"),  # "y,,"
        ("c=biws", "c="),
        ("c=biws", "c=!!!!"),
        (",p=", ",p=A"),
        (",p=", ",p=AAAA"),
        (",p=", ",q="),
    ],
)
def test_final_messages_that_are_refused(old, new):
    answers, final = finals()
    with pytest.raises(SaslFailed, match="invalid credentials"):
        answers.step(final.replace(old, new).encode())


@pytest.mark.parametrize("proof", ["", "AAAA", base64.b64encode(bytes(32)).decode(), "AAAA" * 40])
def test_proofs_of_any_length_are_compared(proof):
    answers, final = finals()
    with pytest.raises(SaslFailed, match="invalid credentials"):
        answers.step(f"{final.partition(',p=')[0]},p={proof}".encode())


@pytest.mark.parametrize(
    ("header", "is_taken"), [(b"n,,", True), (b"y,,", False), (b"n,a=alice,", False), (b"", False)]
)
def test_the_final_message_repeats_the_header_of_the_first(header, is_taken):
    answers, asked = server(), client()
    challenge = answers.step(asked.first()).token.decode()
    nonce = challenge.partition(",")[0]
    unproved = f"c={base64.b64encode(header).decode()},{nonce}"
    message = f"n=alice,r=client+nonce,{challenge},{unproved}".encode()
    salted = salted_password(SCRAM_SHA_256, "secret", SALT, 4096)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(credential(SCRAM_SHA_256).stored_key, message, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = f"{unproved},p={base64.b64encode(proof).decode()}".encode()
    if is_taken:
        assert answers.step(final).user == "alice"
    else:
        with pytest.raises(SaslFailed):
            answers.step(final)


def test_what_was_said_once_cannot_be_said_again():
    answers, asked = server(nonce="first"), client()
    final = asked.step(answers.step(asked.first()).token)
    again = server(nonce="second")
    again.step(asked.first())
    with pytest.raises(SaslFailed):
        again.step(final)


def test_an_extension_of_the_final_message_is_part_of_what_is_proved():
    answers, final = finals()
    with pytest.raises(SaslFailed):
        answers.step(final.replace(",p=", ",x=y,p=").encode())


@pytest.mark.parametrize("later", [{}, {"alice": credential(SCRAM_SHA_256, "other", b"salt")}])
def test_a_credential_that_changes_in_the_middle_of_a_login_ends_it(later):
    users = {"alice": credential(SCRAM_SHA_256)}
    answers, asked = server(users=users), client()
    final = asked.step(answers.step(asked.first()).token)
    users.clear()
    users.update(later)
    with pytest.raises(SaslFailed):
        answers.step(final)


def test_secrets_do_not_show():
    assert repr(credential(SCRAM_SHA_256)) == "ScramCredential(iterations=4096)"


# ------------------------------------------------------------------------------------ the client


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("r=client+nonce,s=c2FsdA==,i=4096", "answers another one"),
        ("r=other+nonce+server,s=c2FsdA==,i=4096", "answers another one"),
        ("r=client+nonce2,s=c2FsdA==,i=4095", "4095 iterations"),
        ("r=client+nonce2,s=c2FsdA==,i=1000001", "1000001 iterations"),  # CVE-2026-10143
        ("r=client+nonce2,s=c2FsdA==,i=99999999999999", "cannot be read"),
        ("r=client+nonce2,s=c2Fsd,i=4096", "cannot be read"),
        ("e=other-error", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_a_client_refuses_a_server_that_is_none(answer, problem):
    with pytest.raises(SaslFailed, match=problem):
        client().step(answer.encode())


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (f"v={base64.b64encode(bytes(32)).decode()}", "does not know the password"),
        ("v=", "does not know the password"),
        ("e=invalid-proof", "the server refuses: invalid-proof"),
        ("x", "cannot be read"),
    ],
)
def test_a_client_verifies_that_the_server_knows_the_credential(answer, problem):
    asked = client()
    asked.step(server().step(asked.first()).token)
    with pytest.raises(SaslFailed, match=problem):
        asked.step(answer.encode())


@pytest.mark.parametrize(
    ("iterations", "rounds"),
    [(4096, 4096), (CLIENT_ITERATIONS_MAX, CLIENT_ITERATIONS_MAX), (CLIENT_ITERATIONS_MAX + 1, 0)],
)
def test_a_client_says_how_much_it_has_to_hash(iterations, rounds):
    assert client().rounds(f"r=client+nonce2,s=c2FsdA==,i={iterations}".encode()) == rounds
    assert client().rounds(b"nonsense") == 0


def test_the_last_message_is_not_hashed():
    asked = client()
    answer = server().step(asked.first()).token
    assert asked.rounds(answer) == 4096
    asked.step(answer)
    assert asked.rounds(answer) == 0


def test_what_is_stored_is_what_rfc_5802_says():
    salted = hashlib.pbkdf2_hmac("sha512", b"secret", SALT, 8192)
    found = credential_of(SCRAM_SHA_512, salted, SALT, 8192)
    assert (found.salt, found.iterations) == (SALT, 8192)
    assert len(found.stored_key) == len(found.server_key) == 64
