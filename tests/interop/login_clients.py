"""Client libraries and tools that log in: what they write and read, or what they say when they are
not let in."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import aiokafka
import confluent_kafka

from tests.counterparts.kafka_tools import (
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    PRODUCER_PERFORMANCE,
    run_tool,
)
from tests.counterparts.kcat import kcat
from tests.counterparts.logins import (
    LOGIN_MODULES,
    Login,
    aiokafka_settings,
    java_settings,
    kafka_python_settings,
    librdkafka_settings,
)
from tests.interop import refused_kafka_python
from tests.interop.clients import kafka
from tests.interop.transactional import COMMITTED, PRODUCERS

TIMEOUT_S = 60
LET_IN = "let in"
WRITTEN, COMMITTED_VALUE = b"written", b"committed"
ALERT = re.compile(
    r"error:\w+:SSL routines::\S+ alert ([a-z ]+): SSL alert number \w+|fatal alert: (\w+)"
)
"""The messages of librdkafka and Java for a TLS alert from the broker."""


class LoginClient(Protocol):
    """The interface of a client in these tests."""

    name: str
    has_transactions = True

    def write(self, servers: str, login: Login, topic: str, directory: Path) -> None:
        """Write WRITTEN; abort a transaction, commit another one of COMMITTED_VALUE."""

    def read(
        self, servers: str, login: Login, topic: str, count: int, directory: Path
    ) -> list[bytes]:
        """Return the first values that are committed, as a member of the group of that name."""

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        """Return the client's message for a refused login."""


def transact(library: str, servers: str, topic: str, settings: dict[str, Any]) -> None:
    """Abort a transaction, and commit one with offsets."""
    producer = PRODUCERS[library](servers, topic, **settings)
    try:
        producer.begin()
        producer.send(topic, 0, b"aborted")
        producer.abort()
        producer.begin()
        producer.send(topic, 0, COMMITTED_VALUE)
        producer.send_offsets({(topic, 0): 0}, f"{topic}-input")
        producer.commit()
    finally:
        producer.close()


class KafkaPython:
    name = "kafka-python"
    has_transactions = True

    def settings(self, servers: str, login: Login) -> dict[str, Any]:
        return {"bootstrap_servers": servers, **kafka_python_settings(login)}

    def write(self, servers: str, login: Login, topic: str, directory: Path) -> None:
        producer = kafka.KafkaProducer(**self.settings(servers, login))
        try:
            producer.send(topic, WRITTEN).get(TIMEOUT_S)
        finally:
            producer.close()
        transact(self.name, servers, topic, kafka_python_settings(login))

    def read(
        self, servers: str, login: Login, topic: str, count: int, directory: Path
    ) -> list[bytes]:
        consumer = kafka.KafkaConsumer(
            topic,
            group_id=topic,
            auto_offset_reset="earliest",
            isolation_level=COMMITTED,
            consumer_timeout_ms=TIMEOUT_S * 1000,
            **self.settings(servers, login),
        )
        try:
            return [bytes(record.value) for _, record in zip(range(count), consumer, strict=False)]
        finally:
            consumer.close()

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        return without_numbers(refused_kafka_python.refusal(servers, login)) or LET_IN


class ConfluentKafka:
    name = "confluent-kafka"
    has_transactions = True

    def settings(self, servers: str, login: Login) -> dict[str, Any]:
        return {"bootstrap.servers": servers, **librdkafka_settings(login)}

    def write(self, servers: str, login: Login, topic: str, directory: Path) -> None:
        producer = confluent_kafka.Producer(self.settings(servers, login))
        failed: list[Any] = []
        producer.produce(topic, WRITTEN, on_delivery=lambda error, _m: failed.append(error))
        assert producer.flush(TIMEOUT_S) == 0
        assert failed == [None]
        transact(self.name, servers, topic, librdkafka_settings(login))

    def read(
        self, servers: str, login: Login, topic: str, count: int, directory: Path
    ) -> list[bytes]:
        reading = {
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "isolation.level": COMMITTED,
        }
        consumer = confluent_kafka.Consumer(self.settings(servers, login) | reading)
        values = []
        try:
            consumer.subscribe([topic])
            for _ in range(count):
                message = consumer.poll(TIMEOUT_S)
                assert message is not None
                assert message.error() is None
                values.append(bytes(message.value()))
        finally:
            consumer.close()
        return values

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        heard: list[str] = []
        final = (confluent_kafka.KafkaError._AUTHENTICATION, confluent_kafka.KafkaError._SSL)

        def on_error(error: confluent_kafka.KafkaError) -> None:
            if error.code() in final or ALERT.search(error.str()):
                heard.append(error.str())

        quietly = {"error_cb": on_error, "log_level": 0}
        producer = confluent_kafka.Producer(self.settings(servers, login) | quietly)
        deadline = time.monotonic() + TIMEOUT_S
        while not heard and time.monotonic() < deadline:
            producer.poll(0.1)
        return without_numbers(heard[0]) if heard else LET_IN


class Aiokafka:
    name = "aiokafka"
    has_transactions = True

    def settings(self, servers: str, login: Login) -> dict[str, Any]:
        return {"bootstrap_servers": servers, **aiokafka_settings(login)}

    def write(self, servers: str, login: Login, topic: str, directory: Path) -> None:
        async def run() -> None:
            async with aiokafka.AIOKafkaProducer(**self.settings(servers, login)) as producer:
                await producer.send_and_wait(topic, WRITTEN)

        asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))
        transact(self.name, servers, topic, aiokafka_settings(login))

    def read(
        self, servers: str, login: Login, topic: str, count: int, directory: Path
    ) -> list[bytes]:
        async def run() -> list[bytes]:
            consumer = aiokafka.AIOKafkaConsumer(
                topic,
                group_id=topic,
                auto_offset_reset="earliest",
                isolation_level=COMMITTED,
                **self.settings(servers, login),
            )
            async with consumer:
                return [bytes((await consumer.getone()).value) for _ in range(count)]

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
    has_transactions = False

    def arguments(self, servers: str, login: Login) -> list[str]:
        settings = {"bootstrap.servers": servers, **librdkafka_settings(login)}
        if settings.pop("oauth_cb", None) is not None:
            settings |= {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={login.user}",
            }
        return [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]

    def write(self, servers: str, login: Login, topic: str, directory: Path) -> None:
        common = [kcat(), *self.arguments(servers, login)]
        self._run([*common, "-P", "-t", topic], WRITTEN)

    def read(
        self, servers: str, login: Login, topic: str, count: int, directory: Path
    ) -> list[bytes]:
        common = [kcat(), *self.arguments(servers, login)]
        return self._run([*common, "-G", topic, "-o", "beginning", "-c", str(count), topic]).split()

    def _run(self, command: list[str], stdin: bytes = b"") -> bytes:
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=True
        ).stdout

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        # kcat retries many times; its first message is about the first response.
        command = [kcat(), *self.arguments(servers, login), "-L", "-m", str(TIMEOUT_S)]
        said = []
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as running:
            assert running.stderr is not None
            for line in running.stderr:
                said.append(line)
                if "SASL authentication" in line or "SSL handshake" in line or ALERT.search(line):
                    running.kill()
                    return without_numbers(line.rstrip("\n").partition("]: ")[2])
        return "".join(said) or LET_IN


class KafkaConsole:
    """Apache Kafka's console producer and consumer, and the transactions of its measuring tool."""

    name = "Java"
    has_transactions = True

    def settings(self, login: Login, directory: Path) -> tuple[Path, dict[str, str]]:
        """Write the client's file; return it and the properties that the JVM needs."""
        settings, properties = java_settings(login), {}
        if login.token:
            path = directory / "token"
            path.write_text(login.token)
            package = f"{LOGIN_MODULES}.oauthbearer"
            settings |= {
                "sasl.jaas.config": f"{package}.OAuthBearerLoginModule required;",
                "sasl.login.callback.handler.class": f"{package}.OAuthBearerLoginCallbackHandler",
                "sasl.oauthbearer.token.endpoint.url": f"file://{path}",
            }
            allowed = "org.apache.kafka.sasl.oauthbearer.allowed"
            properties = {f"{allowed}.urls": f"file://{path}", f"{allowed}.files": str(path)}
        file = directory / "client.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file, properties

    def write(self, servers: str, login: Login, topic: str, directory: Path) -> None:
        file, properties = self.settings(login, directory)
        common = ["--bootstrap-server", servers, "--topic", topic, "--command-config", str(file)]
        sent = run_tool(
            CONSOLE_PRODUCER,
            *common,
            stdin=f"{WRITTEN.decode()}\n",
            properties=properties,
        )
        assert sent.exit_code == 0, sent.output
        payload = directory / "payload"
        payload.write_bytes(COMMITTED_VALUE)
        sent = run_tool(
            PRODUCER_PERFORMANCE,
            *common,
            *("--num-records", "1", "--throughput", "-1", "--payload-file", str(payload)),
            *("--transactional-id", topic),
            properties=properties,
        )
        assert sent.exit_code == 0, sent.output

    def read(
        self, servers: str, login: Login, topic: str, count: int, directory: Path
    ) -> list[bytes]:
        file, properties = self.settings(login, directory)
        received = run_tool(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", servers, "--topic", topic, "--command-config", str(file)),
            *("--group", topic, "--from-beginning", "--max-messages", str(count)),
            *("--command-property", f"isolation.level={COMMITTED}"),
            properties=properties,
        )
        assert received.exit_code == 0, received.output
        lines = received.output.encode().splitlines()
        return [line for line in lines if line in {WRITTEN, COMMITTED_VALUE}]

    def refusal(self, servers: str, login: Login, directory: Path) -> str:
        file, properties = self.settings(login, directory)
        found = run_tool(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", servers, "--topic", "t", "--command-config", str(file)),
            *("--timeout-ms", str(TIMEOUT_S * 1000)),
            properties=properties,
        )
        return without_numbers(" / ".join(_causes(found.output))) or found.output


def _causes(output: str) -> Iterator[str]:
    """The messages of a refusal, and of what it was caused by, once."""
    pattern = r"\b(?:SaslAuthenticationException|SSL\w*Exception|CertificateException): (.*)"
    yield from dict.fromkeys(re.findall(pattern, output, re.IGNORECASE))


CLIENTS: dict[str, LoginClient] = {
    each.name: each
    for each in (KafkaPython(), ConfluentKafka(), Aiokafka(), Kcat(), KafkaConsole())
}


def without_numbers(text: str) -> str:
    """Take ports, times and counts out of a message."""
    return re.sub(r"\d+", "N", text)


def alert_in(text: str) -> str:
    """The alert that a message is about, in its name's words; "" for none."""
    found = ALERT.search(text)
    return (found[1] or found[2]).replace("_", " ") if found else ""
