"""Brokers with a listener for each way to protect one, and the settings of clients that get in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from tests.certificates import Authority, Credential
from tests.issuer import AUDIENCE, ISSUER, standard_set, token

MODULES = "org.apache.kafka.common.security"
LISTENERS = {
    "PLAIN": "PLAINTEXT",
    "TLS": "SSL",
    "MTLS": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASL_TLS": "SASL_SSL",
}
USER, PASSWORD = "alice", "alice-secret"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class Keys:
    """Certificates and tokens, in files of a directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.authority = Authority()
        self.broker = self.authority.issue("CN=broker")
        self.client = self.authority.issue(f"CN={USER}")
        self.trust = self.write("ca.pem", self.authority.root_pem)
        self.other_trust = self.write("other-ca.pem", Authority("CN=Other").root_pem)
        self.certificate = self.pem_of("alice", self.client)
        self.store = self.write("alice.p12", self.client.pkcs12("store-secret"))
        self.token = self.write("token", token(USER) + "\n")
        self.token_keys = self.write("keys.json", standard_set())

    def write(self, name: str, content: str | bytes) -> str:
        path = self.directory / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def pem_of(self, name: str, credential: Credential) -> str:
        return self.write(f"{name}.pem", credential.key_pem() + credential.chain_pem)

    def expired(self) -> Credential:
        return self.authority.issue(begins=timedelta(days=-9), ends=timedelta(days=-2))


def broker_settings(
    keys: Keys, ports: Mapping[str, int] | None = None, host: str = "127.0.0.1"
) -> dict[str, str]:
    """Return the settings of a broker; without ``ports`` it takes free ones."""
    ports = ports or dict.fromkeys(LISTENERS, 0)
    settings = {
        "listeners": ",".join(f"{name}://{host}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{LISTENERS[name]}" for name in ports if name in LISTENERS
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": keys.broker.key_pem().replace("\n", " "),
        "ssl.keystore.certificate.chain": keys.broker.chain_pem.replace("\n", " "),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": keys.authority.root_pem.replace("\n", " "),
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "barnabas.scram.credentials": ",".join(
            f"{each}=[name={USER},password={PASSWORD}]" for each in MECHANISMS if "SCRAM" in each
        ),
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys.token_keys}",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    for name, protocol in LISTENERS.items():
        if name in ports and protocol.startswith("SASL_"):
            prefix = f"listener.name.{name.lower()}"
            settings[f"{prefix}.plain.sasl.jaas.config"] = (
                f'{MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            )
    return {key: value for key, value in settings.items() if "mtls" not in key or "MTLS" in ports}


def login(mechanism: str, user: str = USER, password: str = PASSWORD) -> dict[str, str]:
    """Return the settings of a client that logs in by user and password."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{MODULES}.{module}LoginModule required "
        f'username="{user}" password="{password}";',
    }


def token_login(path: str) -> dict[str, str]:
    """Return the settings of a client that logs in by the token in a file."""
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": (
            f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
        "sasl.oauthbearer.token.endpoint.url": f"file://{path}",
    }


def trusting(keys: Keys, protocol: str) -> dict[str, str]:
    """Return the settings of a client that trusts the broker."""
    settings = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": keys.trust}
    return settings


def as_properties(settings: Mapping[str, str]) -> str:
    """Write settings as a file of Java's has them."""
    escaped = {key: value.replace("\\", "\\\\") for key, value in settings.items()}
    lines = [f"{key}={value}".replace("\n", "\\n") for key, value in escaped.items()]
    return "\n".join(lines) + "\n"
