"""Lines for people and for programs, and where the rest of what is printed goes."""

import json
import os
import subprocess
import sys

import pytest

from barnabas.spark_connector.monitoring.progress import batch_progress
from barnabas.spark_connector.running.screen import Screen
from tests.spark_connector.test_progress import report

BATCH = batch_progress("a", report(7))


def test_a_person_reads_everything_on_standard_output(capsys):
    with Screen("text") as screen:
        screen.note("starting")
        screen.announce("the address")
        screen.batch(BATCH)
        print("from the pipeline")
    captured = capsys.readouterr()
    assert captured.out == f"starting\nthe address\n{BATCH.as_text()}\nfrom the pipeline\n"
    assert captured.err == ""


def test_a_program_finds_nothing_but_json_there(capsys):
    with Screen("json") as screen:
        screen.note("starting")
        screen.announce("the address")
        screen.batch(BATCH)
        print("from the pipeline")
    print("afterwards")
    captured = capsys.readouterr()
    line, after = captured.out.splitlines()
    assert json.loads(line)["batch"] == 7
    assert after == "afterwards"
    assert captured.err == "the address\nfrom the pipeline\n"


@pytest.mark.parametrize("shown", ["text", "json"])
def test_closed_output_is_one_sentence(shown):
    program = (
        "from barnabas.spark_connector.running.screen import Screen\n"
        "from barnabas.spark_connector.refusals import Refusal\n"
        "from tests.real.spark_connector.test_screen import BATCH\n"
        f"with Screen({shown!r}) as screen:\n"
        "    try:\n        screen.batch(BATCH)\n"
        "    except Refusal as refusal:\n        raise SystemExit(str(refusal))\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-c", program],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert ended.returncode == 1
    closed = "standard output was closed by its reader, so the pipelines were stopped\n"
    assert ended.stderr == closed
