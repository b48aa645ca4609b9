"""``barnabas prove`` on programs with kafka-python: a right one, wrong ones, and none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.interop.command_line import run_alone

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

RIGHT = """
import os, sys
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata

servers = {"bootstrap_servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"]}
name = "invoicing-" + sys.argv[1]
orders = KafkaConsumer(
    "orders", group_id="invoicing", group_instance_id=name, enable_auto_commit=False,
    isolation_level="read_committed", auto_offset_reset="earliest",
    session_timeout_ms=3000, heartbeat_interval_ms=300, **servers,
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


def prove(directory: Path, program: str, *more: str):
    path = directory / "program.py"
    path.write_text(program)
    return run_alone(*WORDS, *more, "--", sys.executable, str(path), "{instance}")


def test_right_program_is_proved(tmp_path):
    ended = prove(tmp_path, RIGHT)
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == "PROVED"


def test_program_that_reads_uncommitted_inputs_is_not_proved(tmp_path):
    ended = prove(tmp_path, UNCOMMITTED, "--faults", "none")
    assert ended.exit_code == 1, ended.stdout + ended.stderr
    assert "from an aborted transaction: " in ended.stdout
    assert ended.stdout.splitlines()[-1] == "NOT PROVED"


def test_program_that_ends_at_once_is_reported_with_its_last_words(tmp_path):
    ended = prove(tmp_path, "raise SystemExit('no such setting')")
    assert ended.exit_code == 2
    assert "nothing was tried: the program ended 4 times, exit code 1" in ended.stderr
    assert "  no such setting" in ended.stderr


def test_program_that_cannot_be_started_is_named():
    ended = run_alone(*WORDS, "--", "/no/such/program")
    assert ended.exit_code == 2
    assert "cannot be started: /no/such/program: No such file or directory" in ended.stderr


def test_missing_program_is_a_wrong_use():
    ended = run_alone(*WORDS)
    assert ended.exit_code == 2
    assert ended.stderr == "barnabas: no program: add -- and its command line\n"
