"""Client settings: what they come to, and what is refused, in words without a secret."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from barnabas.broker.client.credentials import Credential
from barnabas.broker.client.errors import WrongSetting
from barnabas.broker.client.security import ClientSecurity, security_of
from barnabas.broker.client.security_keys import KNOWN, SECRETS, is_about_security
from tests.secured import MODULES, login, token_login

KAFKAS = [
    [cell.strip() for cell in line.split("|")]
    for line in (Path(__file__).parent / "kafka_client_keys.txt").read_text().splitlines()
    if not line.startswith("#")
]
SASL = {"security.protocol": "SASL_PLAINTEXT"}
SECONDS = 20.0


def of(settings, environment=None):
    return security_of(settings, environment or {})


def problem(settings, environment=None):
    with pytest.raises(WrongSetting) as raised:
        of(settings, environment)
    assert str(raised.value) == f"{raised.value.key}: {raised.value.reason}"
    return str(raised.value)


def test_nothing_is_plain_text():
    assert of({}) == ClientSecurity("PLAINTEXT", {}, None)
    assert of({"client.id": "x", "group.id": "y", "enable.auto.commit": "z"}) == of({})
    assert (
        of({"security.protocol": "plaintext", "ssl.truststore.location": "/x"}).credential is None
    )


@pytest.mark.parametrize("protocol", ["SSL", "ssl", " SSL "])
def test_protocols_are_taken_in_any_case(protocol):
    assert of({"security.protocol": protocol}).protocol == "SSL"


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("required", 'username="al;ice" password=\'se"cret=\';'),
        ("REQUIRED", '\n  username="al;ice"\n  password="se\\"cret=" // ours\n;'),
        ("sufficient", 'password=\'se"cret=\' username="al;ice" serviceName=kafka;'),
    ],
)
@pytest.mark.parametrize("shade", ["", "kafkashaded."])
def test_jaas_lines_as_people_write_them(mechanism, module, flag, options, shade):
    line = f"{shade}{MODULES}.{module} {flag} {options}"
    found = of(SASL | {"sasl.mechanism": mechanism, "sasl.jaas.config": line}).credential
    assert found == Credential(mechanism, "al;ice", 'se"cret=')


def test_librdkafkas_spelling_of_a_login():
    settings = {"sasl.mechanisms": "PLAIN", "sasl.username": "a", "sasl.password": " secret "}
    assert of(SASL | settings).credential == Credential("PLAIN", "a", " secret ")


def test_tokens_are_in_files(tmp_path):
    found = of(SASL | token_login("/run/to%20ken")).credential
    assert found.token_path == "/run/to ken"
    line = f'{MODULES}.oauthbearer.OAuthBearerLoginModule required extension_pool="p1";'
    path = tmp_path / "token"
    path.write_text("aaa.bbb.ccc\n")
    settings = token_login(path) | {"sasl.jaas.config": line}
    for url in (f"file://{path}", f"file:{path}", f"file://localhost{path}"):
        settings["sasl.oauthbearer.token.endpoint.url"] = url
        exchange = of(SASL | settings).credential.exchange(SECONDS)
        assert exchange.first() == b"n,,\1auth=Bearer aaa.bbb.ccc\1pool=p1\1\1"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "No such file or directory"),
        ("", "there is no token in it"),
        ("two words", "there is no token in it"),
        ("a" * 70_000, "there is no token in it"),
        ("a\nb", "there is no token in it"),
    ],
)
def test_files_without_a_token(content, expected, tmp_path):
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    credential = of(SASL | token_login(path)).credential
    with pytest.raises(WrongSetting) as raised:
        credential.exchange(SECONDS)
    assert str(raised.value) == f"sasl.oauthbearer.token.endpoint.url: {path}: {expected}"


ID = "sasl.oauthbearer.client.credentials.client.id"
HIDDEN = "sasl.oauthbearer.client.credentials.client.secret"
SERVER = (
    SASL
    | token_login("/x")
    | {"sasl.oauthbearer.token.endpoint.url": "https://x/token", ID: "x", HIDDEN: "very-secret"}
)


OAUTH = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: TLS is none of PLAINTEXT, SSL, SASL_"),
        ({"sasl.mechanism": "PLAIN"}, "security.protocol: it is not set, and without it sasl.mech"),
        ({"ssl.ca.location": "/x"}, "security.protocol: it is not set, and without it ssl.ca"),
        (login("PLAIN"), "has no effect; is it SASL_SSL?"),
        (SASL, "sasl.mechanism: it is not set, and Kafka's default, GSSAPI (Kerberos), is not"),
        (SASL | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism: GSSAPI is not available; there are"),
        (SASL | {"sasl.mechanism": "plain"}, "sasl.mechanism: plain is not available; there are O"),
        (
            SASL | {"sasl.mechanism": "PLAIN"},
            "sasl.jaas.config: must be set: PLAIN takes org.apa",
        ),
        (SASL | login("PLAIN", password=""), "sasl.jaas.config: the login module has no password"),
        (SASL | login("PLAIN", user=""), "sasl.jaas.config: the login module has no username"),
        (
            SASL | login("PLAIN") | {"sasl.mechanism": "SCRAM-SHA-256"},
            f"SCRAM-SHA-256 has the login module {MODULES}.scram.ScramLoginModule",
        ),
        (
            SASL | {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "x required a=b"},
            "sasl.jaas.config: option 2 or ';' is missing",
        ),
        (
            SASL | login("PLAIN") | {"sasl.username": "a"},
            "sasl.username: sasl.jaas.config says the",
        ),
        (
            SASL | {"sasl.mechanism": "PLAIN", "sasl.username": "a"},
            "sasl.password: must be set, because sasl.username is",
        ),
        (
            SASL
            | {
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required username=a "
                "password=b tokenauth=true;",
            },
            "sasl.jaas.config: delegation tokens (tokenauth) are not available",
        ),
        (
            SASL | token_login("/x") | {"sasl.jaas.config": f"{OAUTH} unsecuredLoginX=y;"},
            "sasl.jaas.config: the option unsecuredLoginX is not available; there are clientId, cl",
        ),
        (
            SASL | token_login("/x") | {"sasl.jaas.config": f"{OAUTH} ssl.ca.location=/y;"},
            "sasl.jaas.config: the option ssl.ca.location is not available",
        ),
        (
            SASL | {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{OAUTH};"},
            "sasl.oauthbearer.token.endpoint.url: it is not set; it is the URL of a server of",
        ),
        *(
            (
                SASL | token_login("/x") | {"sasl.oauthbearer.token.endpoint.url": each},
                "sasl.oauthbearer.token.endpoint.url: it must be a URL with https:, http: or file:",
            )
            for each in (
                *("ftp://x/y", "https:x", "http:///x", "x", "http://a b/", "http://user@x/"),
                *(
                    "http://x:99999/",
                    "http://x:port/",
                    "http://x:0/",
                    "http://[x/",
                    "http://x/\u00e9",
                ),
            )
        ),
        *(
            (
                SASL | token_login("/x") | {"sasl.oauthbearer.token.endpoint.url": each},
                f"sasl.oauthbearer.token.endpoint.url: {said}",
            )
            for each, said in (
                ("file://elsewhere/x", "file:/path names a file of this machine"),
                ("file:", "file:/path names a file of this machine"),
                ("file://[x", "Invalid IPv6 URL"),
            )
        ),
        (
            {"sasl.oauthbearer.client.credentials.client.id": "x"},
            "security.protocol: it is not set, and without it sasl.oauthbearer.client.credentials.",
        ),
        (SERVER | {ID: ""}, f"{ID}: it is not set, and sasl.oauthbearer.token.endpoint.url is a"),
        (SERVER | {HIDDEN: " "}, f"{HIDDEN}: it is not set, and sasl.oauthbearer.token.endpoint."),
        (SERVER | {"sasl.oauthbearer.client.id": "y"}, f"sasl.oauthbearer.client.id: {ID} says"),
        *(
            (SERVER | {key: value}, f"{key}: {said}")
            for key, value, said in (
                ("sasl.oauthbearer.method", "default", "default is not available; there is oidc"),
                (
                    "sasl.oauthbearer.grant.type",
                    "x:jwt-bearer",
                    "x:jwt-bearer is not available; th",
                ),
                ("sasl.oauthbearer.extensions", "a=b,c", "must be NAME=VALUE,NAME=VALUE"),
                ("sasl.oauthbearer.header.urlencode", "yes", "must be true or false"),
                ("sasl.login.connect.timeout.ms", "0", "0 is not between 1 and 2147483647"),
                ("sasl.login.read.timeout.ms", "1s", "1s is no number"),
                ("sasl.login.retry.backoff.ms", "-1", "-1 is not between 0 and 2147483647"),
                ("sasl.login.retry.backoff.max.ms", "1e3", "1e3 is no number"),
                ("sasl.login.refresh.window.factor", "0.4", "0.4 is not between 0.5 and 1.0"),
                ("sasl.login.refresh.window.factor", "nan", "nan is not between 0.5 and 1.0"),
                ("sasl.login.refresh.window.jitter", "0.3", "0.3 is not between 0.0 and 0.25"),
                ("sasl.login.refresh.min.period.seconds", "901", "901 is not between 0 and 900"),
                ("sasl.login.refresh.buffer.seconds", "3601", "3601 is not between 0 and 3600"),
            )
        ),
        *(
            ({key: "x"}, f"{key}: assertions are not available: tokens are requested")
            for key in (
                "sasl.oauthbearer.assertion.file",
                "sasl.oauthbearer.assertion.claim.iss",
                "sasl.oauthbearer.assertion.private.key.file",
                "sasl.oauthbearer.assertion.private.key.pem",
            )
        ),
        (
            {"sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.JwtBearerX"},
            "sasl.oauthbearer.jwt.retriever.class: no Java class can be loaded here",
        ),
        ({"https.ca.lokation": "/x"}, "https.ca.lokation: unknown, did you mean https.ca.location"),
        ({"sasl.mechanizm": "PLAIN"}, "sasl.mechanizm: unknown, did you mean sasl.mechanism?"),
        ({"ssl.zzz": ""}, "ssl.zzz: unknown"),
        ({"security.inter.broker.protocol": "SSL"}, "security.inter.broker.protocol: unknown"),
        ({"sasl.login.class": "a.B"}, "sasl.login.class: no Java class can be loaded here"),
        ({"ssl.engine.factory.class": "a.B"}, "ssl.engine.factory.class: no Java class can be"),
        ({"security.providers": "a.B"}, "security.providers: no Java class can be loaded here"),
        ({"ssl.key.password": "\udc80"}, "ssl.key.password: the value is not valid UTF-8"),
    ],
)
def test_invalid_settings_are_rejected(settings, expected):
    said = problem(settings)
    assert expected in said
    assert "secret" not in said.replace(HIDDEN, "")


def test_settings_of_token_requests_are_accepted():
    for change in (
        {},
        {"sasl.oauthbearer.token.endpoint.url": "HTTP://[::1]:8080?x=y"},
        {"sasl.oauthbearer.grant.type": "CLIENT_CREDENTIALS"},
        {"sasl.login.refresh.window.factor": "1.0", "sasl.login.read.timeout.ms": "1"},
        {
            "sasl.oauthbearer.jwt.retriever.class": (
                f"{MODULES}.oauthbearer.ClientCredentialsJwtRetriever"
            )
        },
    ):
        found = of(SERVER | change).credential
        assert found.endpoint.client_id == "x"
        assert found.description == "OAUTHBEARER as x"
        assert pickle.loads(pickle.dumps(found)) == found


def test_every_security_setting_of_kafkas_clients_is_known():
    assert {name for name, *_ in KAFKAS} - KNOWN == {"config.providers"}
    passwords = {name for name, kind, *_ in KAFKAS if kind == "PASSWORD"}
    assert passwords - SECRETS == {"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}


@pytest.mark.parametrize("row", KAFKAS, ids=[row[0] for row in KAFKAS])
def test_the_defaults_of_kafkas_clients_are_taken(row):
    name, _kind, default, *_ = row
    settings = {name: "" if default == "null" else default}
    if name != "sasl.mechanism":  # GSSAPI
        of(settings | {"security.protocol": "SSL"})


def test_which_settings_are_about_security():
    for key in (
        "ssl.x",
        "sasl.x",
        "security.x",
        "config.providers.x",
        "enable.ssl.certificate.ver",
    ):
        assert is_about_security(key) is not key.startswith("enable")
    assert is_about_security("enable.ssl.certificate.verification")
    assert not is_about_security("bootstrap.servers")


# --------------------------------------------------------------------- values that stand elsewhere

FILES = {
    "config.providers": "file,env",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


def test_values_that_stand_elsewhere(tmp_path):
    path = tmp_path / "secrets.properties"
    path.write_text("password=from file\n")
    for reference in (f"${{file:{path}:password}}", "${env:PASSWORD}"):
        settings = SASL | FILES | login("PLAIN", password=reference)
        found = of(settings, {"PASSWORD": "from file"}).credential
        assert found.password == "from file"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            FILES | {"ssl.key.password": "${env:X}"},
            "ssl.key.password: environment variable X is",
        ),
        (
            {"ssl.key.password": "${env:X}"},
            "ssl.key.password: config provider env does not exist: con",
        ),
        ({"config.providers": "env"}, "config.providers.env.class: Value must be one of"),
        ({"config.providers.a.class": "b"}, "config.providers.a.class: config.providers does not"),
    ],
)
def test_values_that_are_not_there(settings, expected):
    assert problem(settings).startswith(expected)


# ------------------------------------------------------------------------------------------ secrets


def test_secrets_are_in_no_text_and_survive_pickling():
    settings = {
        "security.protocol": "SASL_SSL",
        **login("SCRAM-SHA-256", password="the-secret"),
        "ssl.key.password": "the-secret",
        "ssl.keystore.key": "the-secret",
    }
    found = of(settings)
    for each in (found, found.credential, found.credential.exchange(SECONDS)):
        assert "secret" not in f"{each!r}{each}"
    assert repr(found) == "ClientSecurity(SASL_SSL)"
    assert repr(found.credential) == "Credential(SCRAM-SHA-256 as alice)"
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(WrongSetting) as raised:
        found.access()
    assert "secret" not in str(raised.value)


def test_nonces_are_new_each_time():
    credential = of(SASL | login("SCRAM-SHA-256")).credential
    assert credential.exchange(SECONDS).first() != credential.exchange(SECONDS).first()


def test_stores_are_read_for_access_only():
    found = of({"security.protocol": "SSL", "ssl.truststore.location": "/nowhere"})
    with pytest.raises(WrongSetting, match=r"ssl\.truststore\.location: /nowhere: No such file"):
        found.access()
