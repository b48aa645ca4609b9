"""Client settings for a connection, as Java, librdkafka and kafka-python name them.

Certificates can be files or part of the settings; kafka-python supports files only.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.config.security_protocols import has_login, has_tls
from barnabas.broker.security.sasl.jaas_modules import MODULES
from barnabas.protocol.sasl.jaas import JaasModule, jaas_text
from barnabas.protocol.sasl.oauthbearer import MECHANISM as OAUTHBEARER


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClientSettings:
    """Connection of one client to one broker; without a certificate or login they are None.

    A login by token has a mechanism and no user, since each client gets its tokens in its own way.
    """

    servers: str
    protocol: str = "PLAINTEXT"
    ca_location: str | None = None
    """File with the trusted authorities; ``ca_pem`` is its text instead."""
    ca_pem: str | None = None
    key_pem: str | None = None
    """The client's own private key, if it has a certificate."""
    certificate_pem: str | None = None
    mechanism: str | None = None
    user: str = ""
    password: str = ""

    @property
    def has_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return has_tls(self.protocol)

    @property
    def has_login(self) -> bool:
        """Whether the client logs in."""
        return has_login(self.protocol)

    @property
    def has_password(self) -> bool:
        """Whether the mechanism logs in by a user's name and password."""
        return self.has_login and self.mechanism != OAUTHBEARER

    def java(self) -> dict[str, str]:
        """Return the settings of Java's clients and tools, and of clients with the same keys."""
        found = {"bootstrap.servers": self.servers, **self._protocol("security.protocol")}
        if self.has_tls:
            found |= self._java_stores()
        if self.has_login:
            assert self.mechanism is not None
            options = {"username": self.user, "password": self.password}
            module = MODULES[self.mechanism]
            login = JaasModule(module, "required", options if self.has_password else {})
            found |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": jaas_text(login)}
        return found

    def _java_stores(self) -> dict[str, str]:
        found = {"ssl.truststore.type": "PEM"} if self.ca_location or self.ca_pem else {}
        if self.ca_location:
            found["ssl.truststore.location"] = self.ca_location
        if self.ca_pem:
            found["ssl.truststore.certificates"] = self.ca_pem
        if self.key_pem and self.certificate_pem:
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": self.key_pem,
                "ssl.keystore.certificate.chain": self.certificate_pem,
            }
        return found

    def librdkafka(self) -> dict[str, str]:
        """Return the settings of librdkafka: confluent-kafka, kcat and others."""
        found = {"bootstrap.servers": self.servers, **self._protocol("security.protocol")}
        if self.has_tls:
            stores = {
                "ssl.ca.location": self.ca_location,
                "ssl.ca.pem": self.ca_pem,
                "ssl.key.pem": self.key_pem,
                "ssl.certificate.pem": self.certificate_pem,
            }
            found |= {key: value for key, value in stores.items() if value}
        if self.has_login:
            assert self.mechanism is not None
            found["sasl.mechanism"] = self.mechanism
        if self.has_password:
            found |= {"sasl.username": self.user, "sasl.password": self.password}
        return found

    def kafka_python(self) -> dict[str, str]:
        """Return the keyword arguments of kafka-python."""
        found = {"bootstrap_servers": self.servers, **self._protocol("security_protocol")}
        if self.has_tls and self.ca_location:
            found["ssl_cafile"] = self.ca_location
        if self.has_login:
            assert self.mechanism is not None
            found["sasl_mechanism"] = self.mechanism
        if self.has_password:
            found |= {"sasl_plain_username": self.user, "sasl_plain_password": self.password}
        return found

    def _protocol(self, key: str) -> dict[str, str]:
        """Return the protocol, or an empty dict for the default of every client."""
        return {} if self.protocol == "PLAINTEXT" else {key: self.protocol}
