"""Verdicts as text, JSON and JUnit XML."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from barnabas.broker.cli.proving import judge
from barnabas.broker.cli.proving.causes import CAUSES
from barnabas.broker.cli.proving.faults import Fault, Planned
from barnabas.broker.cli.proving.judge import Input, Observed, Output
from barnabas.broker.cli.proving.report import (
    Failure,
    as_json,
    as_junit,
    failure_as_json,
    failure_as_junit,
    lines,
)
from barnabas.broker.cli.proving.run import Options, Proof
from barnabas.broker.cli.proving.story import Story
from barnabas.broker.cli.proving.timeline import Event

OPTIONS = Options(["python", "invoicing.py"], "orders", "invoices", seed=7)
PERFORMED = [Planned(0.5, Fault("kill", 1.0, client="1")), Planned(1.5, Fault("broker"))]
SCHEDULE = [*PERFORMED, Planned(1.8, Fault("pause", 1.0, client="2"))]


def proof_of(*outputs: Output) -> Proof:
    inputs = [Input(name, 0, offset, b"k") for offset, name in enumerate("ab")]
    verdict = judge.judge(Observed(inputs, outputs, {"g": {0: 2}}))
    story = None
    if verdict.violations:
        events = [Event(1.25, "1b", "wrote <the> output\x00")]
        story = Story(verdict.violations[0], events, CAUSES[:1])
    return Proof(OPTIONS, SCHEDULE, verdict, [], 12.34, [("1", 3)], story, PERFORMED)


RIGHT = proof_of(Output(0, 0, ("a",)), Output(0, 1, ("b",)))
WRONG = proof_of(Output(0, 0, ("a",)), Output(0, 1, ("a",)))


def test_text_of_a_proved_run():
    assert list(lines(RIGHT)) == [
        "2 inputs, 2 outputs, 12 s",
        "faults, seed 7: 1 kill, 1 broker",
        "processes that ended by themselves: 1",
        "exactly one effect: 2",
        "PROVED",
    ]


def test_text_of_a_wrong_run_has_findings_story_and_cause():
    text = list(lines(WRONG))
    assert "lost: 1, inputs without an output, although their offset was committed" in text
    assert "  input b (partition 0 offset 1) has no output; group g is at offset 2" in text
    assert "     1.250 s  1b   wrote <the> output\x00" in text
    assert f"usual cause: {CAUSES[0].text}" in text
    assert f"  see {CAUSES[0].page}" in text
    assert text[-1] == "NOT PROVED"


def test_text_of_outputs_without_ids_names_the_options():
    text = list(lines(proof_of(Output(0, 0, ()), Output(0, 1, ()))))
    assert "no output has an id: see --id, or --judge for outputs without one" in text
    assert not any("--judge" in each for each in lines(WRONG))


def test_json_has_the_verdict_the_performed_faults_and_the_story():
    found = json.loads(json.dumps(as_json(WRONG)))
    assert (found["proved"], found["seed"], found["counts"]) == (False, 7, {"lost": 1, "twice": 1})
    assert [each["kind"] for each in found["faults"]] == ["kill", "broker"]
    assert found["faults"][0] == {"at_s": 0.5, "kind": "kill", "seconds": 1.0, "client": "1"}
    assert found["findings"][0]["outputs"] == [
        {"partition": 0, "offset": 0},
        {"partition": 0, "offset": 1},
    ]
    assert found["story"]["causes"][0]["name"] == CAUSES[0].name
    assert as_json(RIGHT)["story"] is None
    assert as_json(RIGHT)["reason"] is None


@pytest.mark.parametrize(("proof", "failures"), [(RIGHT, 0), (WRONG, 2)])
def test_junit_has_a_case_for_each_kind(proof, failures):
    suite = ET.fromstring(as_junit(proof).partition("\n")[2])
    assert int(suite.attrib["failures"]) == len(suite.findall(".//failure")) == failures
    assert len(suite.findall("testcase")) == int(suite.attrib["tests"]) == len(judge.MEANINGS)


FAILURE = Failure(OPTIONS, "nothing was tried: 'x' <ended>", "no such\x1b setting\n<at all>")


def test_json_without_a_verdict_has_the_reason_and_the_output():
    found = json.loads(json.dumps(failure_as_json(FAILURE)))
    assert (found["proved"], found["seed"]) == (False, 7)
    assert found["reason"] == "nothing was tried: 'x' <ended>"
    assert found["output"] == FAILURE.output


def test_junit_without_a_verdict_has_one_error():
    suite = ET.fromstring(failure_as_junit(FAILURE).partition("\n")[2])
    assert (suite.attrib["tests"], suite.attrib["errors"], suite.attrib["failures"]) == (
        "1",
        "1",
        "0",
    )
    (error,) = suite.findall("testcase/error")
    assert error.attrib["message"] == FAILURE.reason
    assert error.text == "no such? setting\n<at all>"
