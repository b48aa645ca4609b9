"""Client libraries and tools that log in: one round trip, or what they say when they are not let
in."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from pathlib import Path
from typing import NamedTuple, Protocol

import aiokafka
import confluent_kafka
from aiokafka.abc import AbstractTokenProvider
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokenProvider

from tests.counterparts.kafka_tools import CONSOLE_CONSUMER, CONSOLE_PRODUCER, run_tool
from tests.counterparts.kcat import kcat
from tests.interop.clients import kafka
from tests.interop.secured import LOGIN_MODULES

TIMEOUT_S = 60
LET_IN = "let in"


class Login(NamedTuple):
    """What a client logs in with."""

    mechanism: str
    user: str
    password: str = ""
    token: str = ""


class LoginClient(Protocol):
    """What the tests ask of a client."""

    name: str

    def round_trip(self, servers: str, login: Login, topic: str, directory: Path) -> bytes:
        """Write a record, read it back as a member of a group, return its value."""

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        """Return what the client says when it is not let in."""


class _KafkaPythonToken(KafkaPythonTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


class KafkaPython:
    name = "kafka-python"

    def settings(self, servers: str, login: Login) -> dict[str, object]:
        found: dict[str, object] = {
            "bootstrap_servers": servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": login.mechanism,
        }
        if login.token:
            found["sasl_oauth_token_provider"] = _KafkaPythonToken(login.token)
        else:
            found |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
        return found

    def round_trip(self, servers: str, login: Login, topic: str, directory: Path) -> bytes:
        settings = self.settings(servers, login)
        producer = kafka.KafkaProducer(**settings)
        try:
            producer.send(topic, b"from kafka-python").get(TIMEOUT_S)
        finally:
            producer.close()
        consumer = kafka.KafkaConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **settings
        )
        try:
            return bytes(next(consumer).value)
        finally:
            consumer.close()

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        try:
            kafka.KafkaAdminClient(
                bootstrap_timeout_ms=2000, **self.settings(servers, login)
            ).close()
        except kafka.errors.KafkaError as error:
            return without_numbers(f"{type(error).__name__}: {error}")
        return LET_IN


class ConfluentKafka:
    name = "confluent-kafka"

    def settings(self, servers: str, login: Login) -> dict[str, object]:
        found: dict[str, object] = {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": login.mechanism,
        }
        if login.token:
            expires = time.time() + 600
            found["oauth_cb"] = lambda _config: (login.token, expires)
        else:
            found |= {"sasl.username": login.user, "sasl.password": login.password}
        return found

    def round_trip(self, servers: str, login: Login, topic: str, directory: Path) -> bytes:
        settings = self.settings(servers, login)
        producer = confluent_kafka.Producer(settings)
        producer.produce(topic, b"from confluent-kafka")
        assert producer.flush(TIMEOUT_S) == 0
        group = {"group.id": topic, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(settings | group)
        try:
            consumer.subscribe([topic])
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            assert message.error() is None
            return bytes(message.value())
        finally:
            consumer.close()

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        heard: list[str] = []

        def on_error(error: confluent_kafka.KafkaError) -> None:
            if error.code() == confluent_kafka.KafkaError._AUTHENTICATION:
                heard.append(error.str())

        producer = confluent_kafka.Producer(self.settings(servers, login) | {"error_cb": on_error})
        deadline = time.monotonic() + TIMEOUT_S
        while not heard and time.monotonic() < deadline:
            producer.poll(0.1)
        return without_numbers(heard[0]) if heard else LET_IN


class _AiokafkaToken(AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


class Aiokafka:
    name = "aiokafka"

    def settings(self, servers: str, login: Login) -> dict[str, object]:
        found: dict[str, object] = {
            "bootstrap_servers": servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": login.mechanism,
        }
        if login.token:
            found["sasl_oauth_token_provider"] = _AiokafkaToken(login.token)
        else:
            found |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
        return found

    def round_trip(self, servers: str, login: Login, topic: str, directory: Path) -> bytes:
        async def run() -> bytes:
            settings = self.settings(servers, login)
            async with aiokafka.AIOKafkaProducer(**settings) as producer:
                await producer.send_and_wait(topic, b"from aiokafka")
            consumer = aiokafka.AIOKafkaConsumer(
                topic, group_id=topic, auto_offset_reset="earliest", **settings
            )
            async with consumer:
                return bytes((await consumer.getone()).value)

        return asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        async def run() -> str:
            producer = aiokafka.AIOKafkaProducer(**self.settings(servers, login))
            try:
                await producer.start()
                # It takes the status of a bad token for success, and the refusal of its first
                # request for a cluster of no brokers.
                return LET_IN if producer.client.cluster.brokers() else "no brokers"
            except aiokafka.errors.KafkaError as error:
                return f"{type(error).__name__}: {error}"
            finally:
                await producer.stop()

        return without_numbers(asyncio.run(run()))


class Kcat:
    """kcat, on the librdkafka of the system.

    Of tokens it knows those without a signature only. Before librdkafka 2.6 SCRAM says its nonce
    twice in the end, which brokers took before CVE-2024-56128.
    """

    name = "kcat"

    def arguments(self, servers: str, login: Login) -> list[str]:
        settings = {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": login.mechanism,
        }
        if login.mechanism == "OAUTHBEARER":
            settings |= {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={login.user}",
            }
        else:
            settings |= {"sasl.username": login.user, "sasl.password": login.password}
        return [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]

    def round_trip(self, servers: str, login: Login, topic: str, directory: Path) -> bytes:
        common = [kcat(), *self.arguments(servers, login)]
        self._run([*common, "-P", "-t", topic], b"from kcat")
        return self._run([*common, "-G", topic, "-o", "beginning", "-c", "1", topic]).strip()

    def _run(self, command: list[str], stdin: bytes = b"") -> bytes:
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=True
        ).stdout

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        command = [kcat(), *self.arguments(servers, login), "-L", "-m", "2"]
        found = subprocess.run(
            command, capture_output=True, timeout=TIMEOUT_S, check=False, text=True
        )
        lines = [line for line in found.stderr.splitlines() if "SASL authentication" in line]
        return without_numbers(lines[0].partition("]: ")[2]) if lines else found.stderr


class KafkaConsole:
    """Apache Kafka's console producer and consumer."""

    name = "Java"

    def settings(self, login: Login, directory: Path) -> tuple[Path, list[str]]:
        """Write the client's file; return it, and what the JVM needs to be told."""
        lines = ["security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={login.mechanism}"]
        options = []
        if login.token:
            path = directory / "token"
            path.write_text(login.token)
            package = f"{LOGIN_MODULES}.oauthbearer"
            lines += [
                f"sasl.jaas.config={package}.OAuthBearerLoginModule required;",
                f"sasl.login.callback.handler.class={package}.OAuthBearerLoginCallbackHandler",
                f"sasl.oauthbearer.token.endpoint.url=file://{path}",
            ]
            allowed = "org.apache.kafka.sasl.oauthbearer.allowed"
            options = [f"-D{allowed}.urls=file://{path}", f"-D{allowed}.files={path}"]
        else:
            kind = "plain.Plain" if login.mechanism == "PLAIN" else "scram.Scram"
            lines.append(
                f"sasl.jaas.config={LOGIN_MODULES}.{kind}LoginModule required "
                f'username="{login.user}" password="{login.password}";'
            )
        file = directory / "client.properties"
        file.write_text("\n".join(lines))
        return file, options

    def round_trip(self, servers: str, login: Login, topic: str, directory: Path) -> bytes:
        file, options = self.settings(login, directory)
        common = ["--bootstrap-server", servers, "--topic", topic, "--command-config", str(file)]
        sent = run_tool(CONSOLE_PRODUCER, *common, stdin="from Java\n", jvm_options=options or None)
        assert sent.exit_code == 0, sent.output
        received = run_tool(
            CONSOLE_CONSUMER,
            *common,
            *("--group", topic, "--from-beginning", "--max-messages", "1"),
            jvm_options=options or None,
        )
        assert received.exit_code == 0, received.output
        assert "from Java" in received.output
        return b"from Java"

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        file, options = self.settings(login, directory)
        found = run_tool(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", servers, "--topic", "t", "--command-config", str(file)),
            *("--timeout-ms", "20000"),
            jvm_options=options or None,
        )
        match = re.search(r"SaslAuthenticationException: (.*)", found.output)
        return match[1] if match else found.output


CLIENTS: dict[str, LoginClient] = {
    each.name: each
    for each in (KafkaPython(), ConfluentKafka(), Aiokafka(), Kcat(), KafkaConsole())
}


def without_numbers(text: str) -> str:
    """Take ports, times and counts out of a message."""
    return re.sub(r"\d+", "N", text)
