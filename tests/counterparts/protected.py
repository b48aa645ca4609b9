"""Both brokers with a listener for each protocol, the same certificates and the same user."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import UserScramCredentialUpsertion

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST, BrokerProcess
from tests.counterparts.probe import free_port
from tests.secured import LISTENERS, MODULES, PASSWORD, USER, Keys, broker_settings

_OURS = ("barnabas.", "sasl.oauthbearer.")
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


class Protected(BrokerProcess):
    """The common part of both brokers: ports by names of `LISTENERS`; PLAIN is the tests' own."""

    def __init__(self, keys: Keys, directory: Path | None = None, **overrides: str) -> None:
        super().__init__(directory, **overrides)
        self.ports = {name: free_port() for name in LISTENERS} | {"PLAIN": self.port}
        self.overrides = broker_settings(keys, self.ports, HOST) | self.overrides

    def servers(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"


class ProtectedBarnabas(Protected, BarnabasProcess):
    """Barnabas."""


class ProtectedKafka(Protected, ApacheKafka):
    """Apache Kafka, without OAUTHBEARER."""

    def __init__(self, keys: Keys, directory: Path | None = None, **overrides: str) -> None:
        super().__init__(keys, directory, **overrides)
        controller = f"CONTROLLER://{HOST}:{self._controller_port}"
        given = {key: value for key, value in self.overrides.items() if not key.startswith(_OURS)}
        given["listeners"] += f",{controller}"
        given["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
        given["inter.broker.listener.name"] = "PLAIN"
        given["sasl.enabled.mechanisms"] = ",".join(("PLAIN", *_SCRAM))
        for listener in ("sasl", "sasl_tls"):
            for mechanism in _SCRAM:
                key = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
                given[key] = f"{MODULES}.scram.ScramLoginModule required;"
        self.overrides = given

    def start(self) -> Protected:
        """Start, and add the user whom Barnabas has from its configuration."""
        super().start()
        with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)) as admin:
            for mechanism in _SCRAM:  # Two of one user in one request are refused.
                wanted = UserScramCredentialUpsertion(USER, mechanism, PASSWORD)
                problems = admin.alter_user_scram_credentials([wanted])
                assert problems.keys() == {USER}
                assert not problems[USER], problems
        return self
