"""Verification of bearer tokens: signatures, keys, claims, and attacks."""

import base64
import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from jwt import PyJWS
from jwt.algorithms import RSAAlgorithm

from barnabas.broker.config.oauth import ALGORITHMS
from barnabas.broker.security.sasl.token_keys import KEYS_MAX, MalformedKeys, parse_keys
from barnabas.broker.security.sasl.tokens import LIFETIME_MAX_MS, TokenRules, TokenVerifier
from barnabas.protocol.sasl.oauthbearer import InvalidToken, Verified
from barnabas.storage.runtime.clock import now_seconds
from tests.issuer import (
    AUDIENCE,
    ISSUER,
    STANDARD,
    claims,
    ec_key,
    ed_key,
    key_set,
    public_entry,
    public_pem,
    rsa_key,
    standard_set,
    token,
    unsigned,
)
from tests.protocol.mutilation import MUTATORS

KEYS = parse_keys(standard_set(), ALGORITHMS)


class Clock:
    def __init__(self):
        self.skipped_ms = 0

    def now_ms(self):
        return int(now_seconds() * 1000) + self.skipped_ms


def verifier(keys=KEYS, clock=None, unknown=None, **changes):
    given = {
        "algorithms": ALGORITHMS,
        "issuer": ISSUER,
        "audiences": (AUDIENCE, "others"),
        "skew_ms": 30_000,
        **changes,
    }
    asked = [] if unknown is None else unknown
    now_ms = (clock or Clock()).now_ms
    return TokenVerifier(TokenRules(**given), lambda: keys, now_ms, lambda: asked.append(1))


def refused(text, match=None, **changes):
    with pytest.raises(InvalidToken, match=match) as caught:
        verifier(**changes).verify(text)
    assert text[:20] not in str(caught.value) or not text


@pytest.mark.parametrize("algorithm", STANDARD)
def test_signatures_that_hold(algorithm):
    before_ms = int(now_seconds()) * 1000
    found = verifier().verify(token("alice", algorithm, lifetime_s=600))
    assert found.user == "alice"
    assert before_ms + 600_000 <= found.expires_ms <= before_ms + 602_000


@pytest.mark.parametrize("algorithm", STANDARD)
def test_of_another_key(algorithm):
    other = {"rsa": rsa_key, "ec": ec_key, "ed": ed_key}[STANDARD[algorithm]]("other")
    refused(token(algorithm=algorithm, key=other), "token signature is not valid")


def test_a_token_that_was_changed():
    header, payload, signature = token("alice").split(".")
    other = token("bob").split(".")[1]
    refused(f"{header}.{other}.{signature}", "token signature is not valid")
    refused(f"{header}.{payload}.{signature[:-8]}")
    refused(f"{header}.{payload}.", "token signature is not valid")


# -------------------------------------------------------------------------------- algorithms, keys


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
def test_tokens_without_a_signature(algorithm):
    refused(unsigned(algorithm=algorithm), "token algorithm is none of")


def hmac_token(secret):
    """Return a token whose "signature" is an HMAC with public data."""
    parts = [{"alg": "HS256", "typ": "JWT", "kid": "rsa"}, claims()]
    text = b".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=") for p in parts)
    signature = hmac.digest(secret, text, hashlib.sha256)
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


@pytest.mark.parametrize(
    "secret",
    [
        public_pem(rsa_key("one")),
        standard_set(),
        json.dumps(public_entry(rsa_key("one"), "rsa")).encode(),
        b"",
    ],
)
def test_a_public_key_is_no_secret(secret):
    refused(hmac_token(secret), "token algorithm is none of")


def test_a_symmetric_key_in_the_set_is_not_taken():
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "rsa", "alg": "HS256"}
    keys = parse_keys(key_set(secret, public_entry(rsa_key("one"), "rsa")), ALGORITHMS)
    assert len(keys) == 1
    refused(hmac_token(b"secret"), "token algorithm is none of", keys=keys)
    with pytest.raises(MalformedKeys):
        parse_keys(key_set(secret), (*ALGORITHMS, "HS256"))


def test_algorithms_are_those_of_the_configuration():
    only = verifier(algorithms=("ES256",))
    assert only.verify(token(algorithm="ES256")).user == "alice"
    refused(token(algorithm="RS256"), "token algorithm is none of", algorithms=("ES256",))
    with pytest.raises(MalformedKeys):
        parse_keys(key_set(public_entry(rsa_key("one"), "rsa")), ("ES256",))


def test_a_key_is_for_the_algorithm_that_it_names():
    keys = parse_keys(key_set(public_entry(rsa_key("one"), "rsa", alg="PS256")), ALGORITHMS)
    assert verifier(keys).verify(token(algorithm="PS256")).user == "alice"
    refused(token(algorithm="RS256"), "no key of the key server fits the token", keys=keys)


def test_a_key_of_another_kind_under_the_same_id():
    keys = parse_keys(key_set(public_entry(ec_key("one"), "rsa")), ALGORITHMS)
    refused(token(algorithm="RS256"), "no key of the key server fits the token", keys=keys)


@pytest.mark.parametrize(
    "entry",
    [
        public_entry(rsa_key("one"), "rsa", use="enc"),
        public_entry(rsa_key("one"), "rsa", key_ops=["encrypt"]),
        public_entry(rsa_key("one"), "rsa", key_ops="verify-not"),
        public_entry(rsa_key("weak", 1024), "rsa"),
        public_entry(rsa_key("one"), "rsa", n=5),
        public_entry(rsa_key("one"), "rsa", n="!"),
        public_entry(rsa_key("one"), "rsa", kid=5),
        public_entry(rsa_key("one"), "rsa", alg=[]),
        public_entry(ec_key("one"), "ec", crv="secp256k1"),
        public_entry(ec_key("one"), "ec", crv="P-384"),
        public_entry(ec_key("k", ec.SECP256K1), "ec"),
        {"kty": ["RSA"], "kid": "rsa"},
        {},
    ],
)
def test_keys_that_are_not_taken(entry):
    with pytest.raises(MalformedKeys, match="no key in it is for any of"):
        parse_keys(key_set(entry), ALGORITHMS)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"{}", b'{"keys":1}', b'{"keys":[1]}', b"[" * 100_000, b"\xff"]
)
def test_invalid_key_set_is_refused(text):
    with pytest.raises(MalformedKeys):
        parse_keys(text, ALGORITHMS)


def test_sets_of_keys_have_a_limit():
    entry = public_entry(rsa_key("one"), "rsa")
    assert len(parse_keys(key_set(*[entry] * KEYS_MAX), ALGORITHMS)) == KEYS_MAX
    with pytest.raises(MalformedKeys, match="101 keys, more than 100"):
        parse_keys(key_set(*[entry] * (KEYS_MAX + 1)), ALGORITHMS)


def test_of_a_private_key_only_the_public_part_is_taken():
    private = json.loads(RSAAlgorithm.to_jwk(rsa_key("one"))) | {
        "kid": "rsa",
        "key_ops": ["sign", "verify"],
    }
    keys = parse_keys(key_set(private), ALGORITHMS)
    (key,) = keys.for_token("rsa", "RS256")
    assert not hasattr(key, "private_bytes")
    assert verifier(keys).verify(token()).user == "alice"


def test_a_token_without_a_key_id_is_tried_with_few_keys():
    entries = [public_entry(rsa_key(name), None) for name in ("a", "b", "one", "c", "d", "late")]
    keys = parse_keys(key_set(*entries), ALGORITHMS)
    assert verifier(keys).verify(token(key_id=None)).user == "alice"
    refused(token(key=rsa_key("late"), key_id=None), "signature is not valid", keys=keys)


def test_an_unknown_key_is_asked_for():
    unknown = []
    refused(token(key_id="new"), "no key of the key server fits the token", unknown=unknown)
    assert unknown == [1]
    refused(
        token(algorithm="ES256", key_id="rsa"),
        "no key of the key server fits the token",
        unknown=unknown,
    )
    assert unknown == [1]  # It is known, and for something else.


@pytest.mark.parametrize(
    "headers",
    [
        {"crit": ["exp"], "exp": 1},
        {"crit": []},
        {"jku": "http://169.254.169.254/"},
        {"x5u": "file:///etc/passwd"},
        {"jwk": public_entry(rsa_key("mine"), "rsa")},
    ],
)
def test_a_header_decides_nothing(headers):
    refused(token(key=rsa_key("mine"), headers=headers))


def test_critical_extensions_are_not_passed_over():
    refused(token(headers={"crit": ["b64"], "b64": True}), "critical|cannot be parsed")


# ------------------------------------------------------------------------------------------ claims


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"exp": None}, "exp is no time"),
        ({"exp": "9999999999"}, "exp is no time"),
        ({"exp": True}, "exp is no time"),
        ({"exp": 1e400}, "cannot be parsed"),
        ({"exp": float("nan")}, "cannot be parsed"),
        ({"exp": -5}, "exp is before all times"),
        *(({name: 10**401}, f"{name} is no time") for name in ("exp", "iat", "nbf")),
        *(({name: -(10**401)}, f"{name} is before all times") for name in ("exp", "iat", "nbf")),
        ({"exp": 2**63}, "exp is no time"),
        ({"sub": "a\ud800"}, "sub has half of a character"),
        ({"iat": None}, "iat is no time"),
        ({"iat": 99_999_999_999}, "claim iat is in the future"),
        ({"nbf": 99_999_999_999}, "claim nbf is in the future"),
        ({"nbf": "x"}, "nbf is no time"),
        ({"iss": None}, "token issuer does not match sasl.oauthbearer.expected.issuer"),
        ({"iss": f"{ISSUER}/"}, "token issuer does not match sasl.oauthbearer.expected.issuer"),
        ({"iss": [ISSUER]}, "token issuer does not match sasl.oauthbearer.expected.issuer"),
        ({"aud": None}, "token audience does not match sasl.oauthbearer.expected.audience"),
        ({"aud": "somebody"}, "token audience does not match sasl.oauthbearer.expected.audience"),
        (
            {"aud": [["brokers"], 5, {}]},
            "token audience does not match sasl.oauthbearer.expected.audience",
        ),
        ({"aud": []}, "token audience does not match sasl.oauthbearer.expected.audience"),
        ({"sub": None}, "sub is no name"),
        ({"sub": "  "}, "sub is no name"),
        ({"sub": "x" * 2000}, "sub is no name"),
        ({"sub": ["alice"]}, "sub is no name"),
        ({"scope": ""}, "token scopes have an empty entry"),
        ({"scope": ["a", " "]}, "token scopes have an empty entry"),
        ({"scope": ["a", "a"]}, "token scopes have an entry twice"),
    ],
)
def test_claims_that_do_not_hold(changes, problem):
    try:
        text = token(**changes)
    except TypeError:  # The library that makes tokens refuses some of them, too.
        text = by_hand(claims(**changes))
    refused(text, problem)


def signed(payload):
    """Return a token with a valid signature and any payload."""
    return PyJWS().encode(payload, rsa_key("one"), "RS256", headers={"kid": "rsa"})


def by_hand(payload):
    return signed(json.dumps(payload).encode())


def test_a_time_beyond_all_numbers():
    payload = json.dumps(claims(exp=12345)).replace("12345", "1e400").encode()
    refused(signed(payload), "exp is no time")


@pytest.mark.parametrize("payload", [b"[]", b'"x"', b"5", b"null", b"{", b"", b"[" * 20_000])
def test_a_payload_that_is_no_object(payload):
    refused(signed(payload))


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": ["somebody", "others"]},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
        {"scope": 5},
        {"nbf": 0},
        {"exp": 4_000_000_000.5},
    ],
)
def test_claims_that_hold(changes):
    assert verifier().verify(token(**changes)).user == "alice"


def test_clocks_may_differ_a_little():
    clock = Clock()
    text = token(lifetime_s=600)
    clock.skipped_ms = 629_000
    assert verifier(clock=clock).verify(text).user == "alice"
    clock.skipped_ms = 632_000
    refused(text, "claim exp is in the past", clock=clock)
    clock.skipped_ms = -29_000
    assert verifier(clock=clock).verify(text).user == "alice"
    clock.skipped_ms = -32_000
    refused(text, "claim iat is in the future", clock=clock)


def test_a_lifetime_has_an_end():
    clock = Clock()
    found = verifier(clock=clock).verify(token(exp=10**18))
    assert found.expires_ms <= clock.now_ms() + LIFETIME_MAX_MS


def test_the_user_may_be_in_another_claim():
    ends_s = int(now_seconds()) + 600
    assert verifier(user_claim="email").verify(token(email=" a@b ", exp=ends_s)) == Verified(
        "a@b", verifier(user_claim="email").verify(token(email="a@b", exp=ends_s)).expires_ms
    )
    refused(token(), "email is no name", user_claim="email")


def test_issuer_and_audience_may_be_left_open():
    open_for_all = verifier(issuer=None, audiences=())
    assert open_for_all.verify(token(iss=None, aud=None)).user == "alice"


# -------------------------------------------------------------------------------------------- fuzz


@given(st.text(st.sampled_from("eyJ.abcABC019-_="), max_size=60))
def test_any_text_is_refused(text):
    with pytest.raises(InvalidToken):
        verifier().verify(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(["alg", "kid", "crit", "b64", "typ", "jwk", "cty"])


@given(st.dictionaries(NAMES, JSON | st.sampled_from(["RS256", "none", "rsa", "ES256"])))
def test_any_header_is_refused(header):
    segments = [json.dumps(header).encode(), json.dumps(claims()).encode(), b"x" * 256]
    text = b".".join(base64.urlsafe_b64encode(each).rstrip(b"=") for each in segments)
    with pytest.raises(InvalidToken):
        verifier().verify(text.decode())


CLAIMS = st.sampled_from(["sub", "iss", "aud", "iat", "exp", "nbf", "scope"])


@given(st.dictionaries(CLAIMS, JSON, min_size=1))
def test_any_claims_are_taken_or_refused(changes):
    try:
        found = verifier().verify(by_hand(claims() | changes))
    except InvalidToken:
        return
    assert isinstance(found.user, str)
    assert found.expires_ms > 0


@given(
    st.dictionaries(st.sampled_from(["kty", "n", "e", "crv", "x", "y", "kid", "alg", "use"]), JSON),
    st.sampled_from([rsa_key("one"), ec_key("one"), ed_key("one")]),
)
def test_any_key_is_taken_or_refused(changes, key):
    try:
        found = parse_keys(key_set(public_entry(key, "rsa") | changes), ALGORITHMS)
    except MalformedKeys:
        return
    assert len(found) == 1


@given(st.sampled_from(MUTATORS), st.randoms(use_true_random=False))
def test_a_token_that_was_spoilt_is_refused(mutate, draw):
    whole = token("alice")
    spoilt = mutate(whole.encode(), draw).decode("latin-1")
    try:
        verifier().verify(spoilt)
    except InvalidToken:
        return
    # Bits of base64 that stand for nothing may be anything.
    assert spoilt.rpartition(".")[0] == whole.rpartition(".")[0]
    assert unpadded(spoilt.rpartition(".")[2]) == unpadded(whole.rpartition(".")[2])


def unpadded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
