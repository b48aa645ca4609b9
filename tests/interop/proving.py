"""The programs of ``examples/proving``, and the same programs with a classic mistake each."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.cli.proving.causes import CAUSES
from barnabas.spark_connector.session.jars import TESTED_SPARK_VERSIONS
from tests.checkout import ROOT
from tests.counterparts.go import built
from tests.counterparts.jars import KAFKA_VERSION
from tests.counterparts.java_programs import java_program
from tests.counterparts.npm import KAFKAJS, kafkajs, node
from tests.interop.command_line import command, environment

EXAMPLES = ROOT / "examples" / "proving"
INSTANCE = "{instance}"
"""The argument that `barnabas prove` replaces by the number of an instance."""
RUN_LIMIT_S = 500
PROVED, NOT_PROVED = 0, 1
TOPICS = ("--input", "orders", "--output", "invoices")
QUIET_JAVA = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)

Words = Callable[[Path], Sequence[object]]
"""Returns the last arguments of `barnabas prove` for a program with this source."""


def _python(source: Path) -> Sequence[object]:
    return ["--", sys.executable, source, INSTANCE]


def _java(source: Path) -> Sequence[object]:
    return ["--", *java_program("kafka", (source,), QUIET_JAVA), INSTANCE]


def _go(source: Path) -> Sequence[object]:
    return ["--", built(source.parent), INSTANCE]


def _node(source: Path) -> Sequence[object]:
    return ["--", node(), source, kafkajs(), INSTANCE]


def _spark(source: Path) -> Sequence[object]:
    return ["--spark", source]


@dataclass(frozen=True)
class Program:
    """A program that writes one invoice for each order, exactly once."""

    library: str
    source: Path
    version: str
    run: Words

    @property
    def name(self) -> str:
        return self.library

    @property
    def slug(self) -> str:
        """The name in a command line."""
        return self.library.lower()

    def words(self, directory: Path) -> Sequence[object]:
        """Return the last arguments; ``directory`` is where a program can be written."""
        del directory
        return self.run(self.source)


@dataclass(frozen=True)
class Mistake:
    """A program with one classic mistake: the text of a right one, with some lines replaced."""

    kind: str
    program: Program
    replaced: Mapping[str, str]
    cause: str
    """The heading of docs/prove.md that the story names."""

    @property
    def name(self) -> str:
        return f"{self.program.library}, {self.kind}"

    @property
    def slug(self) -> str:
        """The name in a command line."""
        return self.cause

    def text(self) -> str:
        """Return the wrong program; each replaced text is in the right one once."""
        text = self.program.source.read_text()
        for right, wrong in self.replaced.items():
            assert text.count(right) == 1, f"{self.program.source}: {right!r}"
            text = text.replace(right, wrong)
        return text

    def words(self, directory: Path) -> Sequence[object]:
        """Write the program into a directory, and return the last arguments."""
        source = self.program.source
        written = directory / source.parent.name / source.name
        written.parent.mkdir(parents=True, exist_ok=True)
        for beside in source.parent.glob("go.*"):
            written.with_name(beside.name).write_bytes(beside.read_bytes())
        written.write_text(self.text())
        return self.program.run(written)


def _of_go(module: str, directory: str) -> str:
    (found,) = re.findall(rf"{module} v(\S+)", (EXAMPLES / directory / "go.mod").read_text())
    return str(found)


KAFKA_PYTHON = Program(
    "kafka-python", EXAMPLES / "with_kafka_python.py", version("kafka-python"), _python
)
CONFLUENT = Program(
    "confluent-kafka", EXAMPLES / "with_confluent_kafka.py", version("confluent-kafka"), _python
)
AIOKAFKA = Program("aiokafka", EXAMPLES / "with_aiokafka.py", version("aiokafka"), _python)
JAVA = Program("kafka-clients", EXAMPLES / "java" / "Invoicing.java", KAFKA_VERSION, _java)
FRANZ_GO = Program(
    "franz-go",
    EXAMPLES / "franz_go" / "main.go",
    _of_go("github.com/twmb/franz-go", "franz_go"),
    _go,
)
SARAMA = Program(
    "Sarama", EXAMPLES / "sarama" / "main.go", _of_go("github.com/IBM/sarama", "sarama"), _go
)
KAFKAJS_PROGRAM = Program("kafkajs", EXAMPLES / "kafkajs" / "invoicing.js", KAFKAJS.version, _node)
SPARK = Program("Spark", EXAMPLES / "with_spark.py", TESTED_SPARK_VERSIONS[0], _spark)
RIGHT = (KAFKA_PYTHON, CONFLUENT, AIOKAFKA, JAVA, FRANZ_GO, SARAMA, KAFKAJS_PROGRAM)

OUTSIDE = Mistake(
    "offsets outside of the transaction",
    JAVA,
    {
        "        invoices.sendOffsetsToTransaction(batch.nextOffsets(), member);\n": "",
        "invoice(invoices, batch, orders.groupMetadata());": (
            "invoice(invoices, batch, orders.groupMetadata());\n"
            "                    orders.commitSync();"
        ),
    },
    "offsets-outside",
)
UNFENCED = Mistake(
    "no fencing id",
    KAFKA_PYTHON,
    {
        "transactional_id=name": 'transactional_id=f"{name}-{os.urandom(4).hex()}"',
        "    group_instance_id=name,  # a restarted instance gets its partitions at once\n": "",
        "send_offsets_to_transaction(ends, member)": (
            'send_offsets_to_transaction(ends, "invoicing")'
        ),
    },
    "no-fencing",
)
AUTO_COMMIT = Mistake(
    "auto-commit",
    CONFLUENT,
    {
        '"enable.auto.commit": False': '"enable.auto.commit": True',
        "    producer.send_offsets_to_transaction(\n"
        "        [TopicPartition(*partition, end) for partition, end in ends.items()],"
        " member[0], 30\n"
        "    )\n": "",
    },
    "auto-commit",
)
UNCOMMITTED = Mistake(
    "read_uncommitted",
    FRANZ_GO,
    {"kgo.ReadCommitted()": "kgo.ReadUncommitted()"},
    "read-uncommitted",
)
ONE_ACK = Mistake(
    "acks=1 without idempotence",
    JAVA,
    {
        'producer.put("transactional.id", name);': (
            'producer.put("acks", "1");\n        producer.put("enable.idempotence", false);'
        ),
        '        producer.put("transaction.timeout.ms", 10_000);\n': "",
        "            invoices.initTransactions(); // aborts what a previous run left open\n": "",
        "invoice(invoices, batch, orders.groupMetadata());": (
            "invoice(invoices, batch, orders.groupMetadata());\n"
            "                    orders.commitSync();"
        ),
        "        invoices.beginTransaction();\n": "",
        "        invoices.sendOffsetsToTransaction(batch.nextOffsets(), member);\n": "",
        "        invoices.commitTransaction();\n": "",
    },
    "acks-without-idempotence",
)
ALSO_AUTO_COMMIT = Mistake(
    "auto-commit",
    KAFKA_PYTHON,
    {
        "enable_auto_commit=False": "enable_auto_commit=True",
        "    producer.send_offsets_to_transaction(ends, member)\n": "",
    },
    "auto-commit",
)
"""Each kill shows it, so that a short run is enough."""
STOCK_SINK = Mistake(
    "Spark's own sink",
    SPARK,
    {'topic="invoices"),': 'topic="invoices", kind="stock"),'},
    "no-transaction",
)
WRONG = (OUTSIDE, UNFENCED, AUTO_COMMIT, UNCOMMITTED, ONE_ACK)


class Proved(NamedTuple):
    """Output and exit code of a run."""

    code: int
    output: str
    took_s: float

    @property
    def pages(self) -> str:
        """The pages of the causes that it named, without the common part of their addresses."""
        return " ".join(each.page.partition("#")[2] for each in CAUSES if each.page in self.output)

    def line(self, name: str, seed: int) -> str:
        """Return a row of the table."""
        verdict = "proved" if self.code == PROVED else f"found: {self.pages}"
        return f"{name}: seed {seed}, {self.took_s:.0f} s, {verdict}"


def prove(program: Program | Mistake, directory: Path, *options: object) -> Proved:
    """Try a program, whose text may be written into a directory."""
    return proved([*TOPICS, *options, *program.words(directory)], directory)


def proved(words: Sequence[object], directory: Path, limit_s: float = RUN_LIMIT_S) -> Proved:
    """Run the command in a directory."""
    begun_s = time.monotonic()
    ended = subprocess.run(
        command("prove", *words),
        capture_output=True,
        text=True,
        env=environment(),
        cwd=directory,
        timeout=limit_s,
        check=False,
    )
    print(ended.stdout, ended.stderr)
    assert "Traceback" not in ended.stderr
    return Proved(ended.returncode, ended.stdout, time.monotonic() - begun_s)
