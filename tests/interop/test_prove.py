"""``barnabas prove`` on programs with kafka-python: a right one, wrong ones, and none."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from barnabas.broker.cli.proving.judge import BEHIND
from barnabas.broker.cli.proving.run import Options
from barnabas.broker.cli.proving.run import prove as run_proof
from barnabas.broker.cli.proving.served import free_port
from barnabas.broker.client.topic_reader import ReceivedRecord
from barnabas.testing import Broker, Cluster, NotProved, prove
from tests.interop.command_line import command, environment, run, run_alone
from tests.products import for_the_night
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

RIGHT = """
import os, sys
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata

servers = {"bootstrap_servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"]}
name = "invoicing-" + sys.argv[1]
orders = KafkaConsumer(
    "orders", group_id="invoicing", group_instance_id=name, enable_auto_commit=False,
    isolation_level="read_committed", auto_offset_reset="earliest",
    session_timeout_ms=6000, heartbeat_interval_ms=300, **servers,
)
producer = KafkaProducer(transactional_id=name, **servers)
producer.init_transactions()
while True:
    batch = orders.poll(timeout_ms=500)
    if not batch:
        continue
    offsets = {p: OffsetAndMetadata(records[-1].offset + 1, "", -1) for p, records in batch.items()}
    producer.begin_transaction()
    sent = [producer.send("invoices", each.value) for records in batch.values() for each in records]
    producer.send_offsets_to_transaction(offsets, orders.group_metadata())
    written = [future.get(timeout=30) for future in sent]
    producer.commit_transaction()
"""
UNCOMMITTED = RIGHT.replace('"read_committed"', '"read_uncommitted"')
WORDS = ("prove", "--input", "orders", "--output", "invoices", "--seconds", "4", "--seed", "5")
ONE = ("--instances", "1")
"""Options of a test in which two instances would show no more."""


def tried(directory: Path, program: str, *more: str, prove=run):
    path = directory / "program.py"
    path.write_text(program)
    return prove(*WORDS, *more, "--", sys.executable, str(path), "{instance}")


def test_slow_program_gets_time_while_it_advances(tmp_path):
    path = tmp_path / "program.py"
    slow = RIGHT.replace("session_timeout_ms", "max_poll_records=4, session_timeout_ms")
    path.write_text(
        slow.replace("    producer.begin_t", "    time.sleep(0.3)\n    producer.begin_t")
    )
    path.write_text(path.read_text().replace("import os", "import time, os"))
    words = [sys.executable, str(path), "1"]
    options = Options(words, "orders", "invoices", 3.0, faults=(), instances=1, settle_s=4.0)
    proof = run_proof(options)
    assert proof.verdict.counts == {}
    assert proof.verdict.is_proved


def test_group_that_never_advances_is_not_waited_for(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(RIGHT.replace("records[-1].offset + 1", "records[-1].offset"))
    words = [sys.executable, str(path), "1"]
    options = Options(words, "orders", "invoices", 3.0, faults=(), instances=1, settle_s=100.0)
    proof = run_proof(options)
    assert set(proof.verdict.counts) == {BEHIND}
    assert proof.took_s < 90


OWN_OFFSETS = """
import os, sys, time
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

servers = {"bootstrap_servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"]}
orders = KafkaConsumer(
    auto_offset_reset="earliest", isolation_level="read_committed", max_poll_records=4, **servers,
)
orders.assign([TopicPartition("orders", each) for each in range(3)])
producer = KafkaProducer(**servers)
for number, order in enumerate(orders):
    time.sleep(0.07)
    producer.send("invoices", order.value).get(timeout=30)
"""
"""Commits no offsets, as Spark does, so only its outputs show that it advances.

It assigns partitions, since a subscription can miss its topic: see docs/clients/python.md.
"""


def test_slow_program_without_a_group_gets_time_while_it_writes(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(OWN_OFFSETS)
    words = [sys.executable, str(path)]
    options = Options(words, "orders", "invoices", 3.0, faults=(), instances=1, settle_s=4.0)
    proof = run_proof(options)
    assert proof.verdict.counts == {}
    assert proof.verdict.is_proved


def test_slow_program_without_a_group_gets_time_until_its_judge_is_content(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(OWN_OFFSETS.replace("time.sleep(0.07)", "time.sleep(3 * (number == 20))"))

    def judged(inputs: Sequence[ReceivedRecord], outputs: Sequence[ReceivedRecord]) -> list[str]:
        return [f"{len(outputs)} outputs"] if len(outputs) != len(inputs) else []

    words = [sys.executable, str(path)]
    options = Options(
        words, "orders", "invoices", 0.5, faults=(), instances=1, settle_s=20.0, own_judge=judged
    )
    assert run_proof(options).verdict.is_proved


def test_existing_broker_is_not_harmed_itself(tmp_path):
    with Broker() as broker:
        ended = tried(tmp_path, RIGHT, "-b", broker.bootstrap_servers, "--format", "json")
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    found = json.loads(ended.stdout)
    assert found["exactly_one_effect"] == found["inputs"] > 0
    assert "broker" not in {each["kind"] for each in found["faults"]}


def test_story_on_an_existing_cluster_names_the_cause(tmp_path):
    with Cluster(brokers=3) as cluster:
        there = ("-b", cluster.bootstrap_servers, "--faults", "none", *ONE)
        ended = tried(tmp_path, UNCOMMITTED, *there, prove=run_alone)
    assert ended.exit_code == 1, ended.stdout + ended.stderr
    assert "from an aborted transaction: " in ended.stdout
    assert "docs/prove.md#read-uncommitted" in ended.stdout
    assert ended.stdout.splitlines()[-1] == "NOT PROVED"


def test_own_judge_and_own_records_decide(tmp_path):
    records = [json.dumps({"key": f"o-{n}", "value": str(n)}) for n in range(40)]
    (tmp_path / "records").write_text("\n".join(records))
    (tmp_path / "totals.py").write_text(
        "def judge(inputs, outputs):\n"
        "    if sum(int(each.value) for each in outputs) != 780:\n"
        "        yield f'{len(outputs)} outputs of {len(inputs)} inputs'\n"
    )
    replay = ("--replay", str(tmp_path / "records"), "--faults", "kill", *ONE)
    ended = tried(tmp_path, RIGHT, *replay, "--judge", str(tmp_path / "totals.py"))
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("40 inputs, 40 outputs, ")


def invoicing(servers: str, instance: int) -> None:
    """Run the right program in the process that ``prove`` has started."""
    os.environ["KAFKA_BOOTSTRAP_SERVERS"] = servers
    sys.argv[1] = str(instance)
    exec(compile(RIGHT, "invoicing", "exec"), {})


def invoicing_uncommitted(servers: str, instance: int) -> None:
    """Run the wrong program."""
    os.environ["KAFKA_BOOTSTRAP_SERVERS"] = servers
    sys.argv[1] = str(instance)
    exec(compile(UNCOMMITTED, "invoicing", "exec"), {})


@for_the_night(beside="tests/interop/test_documents.py::test_testing")
def test_function_is_proved_in_a_test():
    words = {"source": "orders", "target": "invoices", "seconds": 3, "seed": 6}
    proof = prove(invoicing, faults=("pause",), **words)
    assert proof.verdict.once == proof.verdict.inputs > 0


def test_wrong_function_raises_the_report():
    with pytest.raises(NotProved, match="usual cause: the consumer reads inputs of open"):
        prove(invoicing_uncommitted, source="orders", target="invoices", seconds=4, faults=())


def test_function_inside_another_one_is_refused():
    with pytest.raises(ValueError, match="not a function at the top level of a module"):
        prove(lambda _servers, _instance: None, source="orders", target="invoices")


def test_program_that_ends_at_once_is_reported_with_its_last_words(tmp_path):
    ended = tried(tmp_path, "raise SystemExit('no such setting')", "--format", "junit")
    assert ended.exit_code == 2
    (error,) = ET.fromstring(ended.stdout.partition("\n")[2]).findall("testcase/error")
    assert error.attrib["message"].startswith("nothing was tried: the program ended 4 times")
    assert error.text.endswith("no such setting")
    assert "nothing was tried: the program ended 4 times, exit code 1" in ended.stderr
    assert "  no such setting" in ended.stderr


def test_program_that_cannot_be_started_is_named():
    ended = run(*WORDS, "--format", "json", "--", "/no/such/program")
    assert ended.exit_code == 2
    reason = json.loads(ended.stdout)["reason"]
    assert reason.startswith("the program cannot be started: /no/such/program: No such file")
    assert "cannot be started: /no/such/program: No such file or directory" in ended.stderr


def test_run_without_a_broker_has_no_verdict():
    ended = run(*WORDS, "-b", f"127.0.0.1:{free_port('127.0.0.1')}", "--", "/bin/true")
    assert ended.exit_code == 2, ended.stdout + ended.stderr


def test_run_without_a_temporary_directory_has_no_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    ended = run(*WORDS, "--", "/bin/true")
    assert ended.exit_code == 2, ended.stdout + ended.stderr
    assert ended.stderr == (
        "barnabas: the temporary directory cannot be created: No such file or directory\n"
    )


def test_verdict_that_cannot_be_printed_is_not_a_proof(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(RIGHT)
    briefly = ("--faults", "none", "--seconds", "1", *ONE)
    words = command(*WORDS, *briefly, "--", sys.executable, str(path), "{instance}")
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 1


def test_missing_program_is_a_wrong_use():
    ended = run(*WORDS)
    assert ended.exit_code == 2
    assert ended.stderr == ("barnabas: no program: add -- and its command line, or --spark FILE\n")


def test_program_without_topics_is_a_wrong_use():
    ended = run_alone("prove", "--output", "invoices", "--", "/bin/true")
    assert ended.exit_code == 2
    assert ended.stderr == "barnabas: no topics: add --input TOPIC and --output TOPIC\n"


JOINING = RIGHT.replace(
    "producer.init_transactions()",
    """producer.init_transactions()
from kafka import TopicPartition
table = KafkaConsumer(auto_offset_reset="earliest", isolation_level="read_committed", **servers)
table.assign([TopicPartition("prices", each) for each in range(3)])
prices = {}
while len(prices) < 30:
    for records in table.poll(timeout_ms=500).values():
        prices |= {each.key: each.value for each in records}
""",
).replace('send("invoices", each.value)', 'send("invoices", prices[each.key])')
JUDGE = """
TABLES = {"prices": [(f"item-{number}", str(10 * number)) for number in range(30)]}

def inputs(number):
    return f"item-{number % 30}", "1"

def judge(inputs, outputs):
    due = sum(10 * int(each.key.decode().removeprefix("item-")) for each in inputs)
    if sum(int(each.value) for each in outputs) != due:
        yield f"not {due}"
"""


def test_judge_has_inputs_of_its_own_and_a_table_that_the_program_reads(tmp_path):
    (tmp_path / "prices.py").write_text(JUDGE)
    options = ("--judge", str(tmp_path / "prices.py"), "--faults", "kill", *ONE)
    ended = tried(tmp_path, JOINING, *options)
    assert ended.exit_code == 0, ended.stdout + ended.stderr


def test_output_that_is_the_input_is_a_wrong_use():
    ended = run("prove", "--input", "orders", "--output", "orders", "--", "/bin/true")
    assert ended.exit_code == 2
    assert ended.stderr == "barnabas: --input and --output are one topic: orders\n"


def test_ctrl_c_ends_all_processes(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(f"open({str(tmp_path / 'begun')!r}, 'w').close()\n{RIGHT}")
    words = command(*WORDS, *ONE, "--", sys.executable, str(path), "1")
    with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        wait_until((tmp_path / "begun").exists, lambda: "the program did not start")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert str(tmp_path) not in processes(), "the program still runs"


DAEMON = """
import os, subprocess, sys, time
subprocess.Popen(["sleep", "1000"], start_new_session=True)
open(sys.argv[1], "w").write(os.environ["BARNABAS_PROVE_PROPERTIES"])
time.sleep(1000)
"""
"""Starts a child in a session of its own, and then consumes nothing."""


def test_kill_of_the_command_ends_all_processes(tmp_path):
    path, begun = tmp_path / "program.py", tmp_path / "begun"
    path.write_text(DAEMON)
    words = command(*WORDS, *ONE, "--", sys.executable, str(path), str(begun))
    with subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: begun.exists() and begun.read_text(), lambda: "no program")
        directory = Path(begun.read_text()).parent
        assert len(of_the_run(directory)) == 3, "the broker, the program and its child"
        process.kill()
    wait_until(lambda: not of_the_run(directory), lambda: f"still run: {of_the_run(directory)}")
    wait_until(lambda: not directory.exists(), lambda: f"{directory} was not removed")


def of_the_run(directory: Path) -> list[str]:
    """Return the IDs of the processes with the directory of a run in their environment."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # It has ended.
            if f"={directory}".encode() in each.read_bytes():
                found.append(each.parent.name)
    return found


def processes() -> str:
    """Return the command lines of all processes."""
    found = [each / "cmdline" for each in Path("/proc").iterdir() if each.name.isdecimal()]
    words = []
    for each in found:
        with contextlib.suppress(OSError):  # It has ended.
            words.append(each.read_text(errors="replace"))
    return "\n".join(words)


NOISY = """
import os
line = b"noise " * 10_000
while True:
    os.write(1, line)
"""


def test_output_of_a_noisy_program_is_bounded(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(NOISY)
    words = command(*WORDS, *ONE, "--", sys.executable, str(path))
    variables = environment() | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if "waiting for the first input" in line)
        (output,) = tmp_path.glob("*/instance-1.log")
        sizes = []

        def has_begun_again() -> bool:
            sizes.append(output.stat().st_size)
            return sizes[-1] < max(sizes)

        wait_until(has_begun_again, lambda: f"{output} has {sizes[-1]} bytes")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 143
