"""The harness's findings about a broker that delays others, grows, or loses acknowledged
records."""

from __future__ import annotations

import asyncio

from tests.attack.process import COMPLAINT
from tests.attack.run import run
from tests.attack.scenario import DirectoryScenario, Limits, Scenario, Sent
from tests.products import for_the_night

NOTHING_IS_ALLOWED = Limits(
    neighbour_s=0,
    livez_s=0,
    loop_held_ms=-1,
    peak_bytes=-1,
    left_bytes=-1 << 40,
    descriptors_left=-99,
    settle_s=0,
)


async def _sleep(target, seed, duration_s):
    await asyncio.sleep(duration_s)
    return Sent(naps=1)


async def _kill(target, seed, duration_s):
    target.broker.kill()
    return Sent()


def test_every_limit_is_judged(tmp_path):
    outcome = run(Scenario("nap", _sleep, NOTHING_IS_ALLOWED), 1, 0.5, tmp_path)
    assert outcome.loop_held_ms > 0
    found = outcome.violations
    for what in (
        "a Produce of",
        "a Produce of 540 KB",
        "a Fetch",
        "/livez",
        "rose",
        " stay",
        "descriptors",
        "the loop was held",
    ):
        assert any(what in each for each in found), (what, found)


@for_the_night(beside="tests/attack/test_judgement.py::test_every_limit_is_judged")
def test_a_broker_that_dies_is_noticed(tmp_path):
    found = run(Scenario("kill", _kill), 1, 0.1, tmp_path).violations
    assert "the broker is gone" in found


@for_the_night(beside="tests/attack/test_judgement.py::test_every_limit_is_judged")
def test_findings_of_a_directory_attack_are_kept(tmp_path):
    def attack(workshop, seed, duration_s):
        with workshop.broker() as broker:
            known = workshop.fill(broker, "kept", [10, 20_000])
            assert workshop.values(broker, "kept") == known
            broker.kill()
        with workshop.broker(workshop.copy(broker.directory)) as again:
            workshop.expect(workshop.values(again, "kept") != known, "it is all there")
        return Sent(kills=1)

    assert run(DirectoryScenario("kept", attack), 1, 0.1, tmp_path).violations == [
        "it is all there"
    ]


def test_tracebacks_and_errors_are_complaints():
    assert COMPLAINT.search("Traceback (most recent call last):")
    assert COMPLAINT.search("2026-01-01T00:00:00 ERROR broker: x")
    assert not COMPLAINT.search("2026-01-01T00:00:00 INFO broker: error_code=3")
