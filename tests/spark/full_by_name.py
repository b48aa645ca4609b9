"""format("barnabas") by name alone, at every place: a part of `make spark-crash`.

Its name keeps it out of the ordinary tests. The kills use an environment that pip has made of the
wheel and PySpark, outside of this checkout.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.interop.transactional import COMMITTED, read_with_confluent
from tests.spark.crash_table import TWO_PHASE_PLACES
from tests.spark.job import DATA_SOURCE, Job, expected_value
from tests.spark.judge import PARTITIONS, feed, judge, open_transactions
from tests.spark.programs import (
    DECLARATIVE,
    FLOWS,
    WAYS,
    Installed,
    Program,
    installed_by_pip,
    unpacked_wheel,
)

pytestmark = pytest.mark.timeout(3600)

BATCH = 200
WITHOUT_RETRIES = """
configuration:
  spark.sql.pipelines.maxFlowRetryAttempts: "0"
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Installed:
    return installed_by_pip(tmp_path_factory.mktemp("fresh"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Installed:
    return unpacked_wheel(tmp_path_factory.mktemp("unpacked"))


def jobs_of(broker, directory: Path, name: str, count: int) -> list[Job]:
    return [
        Job(broker.bootstrap_servers, DATA_SOURCE, f"{name}-{number}", str(directory / f"{number}"),
            BATCH)
        for number in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_killed_at_every_place_in_a_fresh_environment(way, fresh, barnabas, tmp_path):
    jobs = jobs_of(barnabas, tmp_path, f"fresh-{way}", len(TWO_PHASE_PLACES))
    for job in jobs:
        feed(job, range(BATCH))
    program = Program(way, tmp_path / way, jobs, fresh)
    program.write()
    program.run()  # C2-middle is passed where a batch was decided before.
    for job in jobs:
        feed(job, range(BATCH, 2 * BATCH))
    program.run_until(TWO_PHASE_PLACES)
    program.run()
    for job in jobs:
        judge([barnabas], program.judged(job), 2 * BATCH)


def counted(job: Job) -> Counter[int]:
    """Count the results by how often each is in the topic."""
    seen = read_with_confluent(job.servers, job.output, PARTITIONS, COMMITTED)
    values = Counter(value for values in seen.values() for value in values)
    assert values.keys() == set(map(expected_value, range(BATCH)))
    return Counter(values.values())


def test_a_full_refresh_is_refused_until_new_query_names_the_query(barnabas, unpacked, tmp_path):
    """The value stays in the file, and holds once."""
    (job,) = jobs_of(barnabas, tmp_path, "refreshed", 1)
    feed(job, range(BATCH))
    program = Program(DECLARATIVE, tmp_path / "pipeline", [job], unpacked)
    program.write()
    program.run()
    given_up: set[str] = set()
    for refreshes in (1, 2):
        value = refused(program, "--full-refresh-all")
        assert given_up < set(value.split(","))
        assert counted(job) == {refreshes: BATCH}
        given_up = set(value.split(","))
        assert len(given_up) == refreshes
        program.write(newQuery=value)
        program.run()  # Continues with the checkpoint of the refused run.
        program.run()
        assert counted(job) == {refreshes + 1: BATCH}
    assert not open_transactions(barnabas, "spark.refreshed")


def refused(program: Program, *arguments: str) -> str:
    """Run a program that is refused; return the value of newQuery that the refusal names."""
    code, said = program.end(program.start(*arguments))
    assert code != 0, said
    (value,) = set(re.findall(r"set the option newQuery to (\S+) to", said))
    return value


def test_a_second_flow_into_a_sink_is_refused(barnabas, unpacked, tmp_path):
    (job,) = jobs_of(barnabas, tmp_path, "shared", 1)
    feed(job, range(BATCH))
    program = Program(DECLARATIVE, tmp_path / "pipeline", [job], unpacked)
    program.write()
    program.run()
    (file,) = (tmp_path / "pipeline" / FLOWS).iterdir()
    flow = file.read_text().partition("@dp.")[2].replace("def shared_0_rows", "def another")
    file.write_text(f"{file.read_text()}\n\n@dp.{flow}")
    spec = tmp_path / "pipeline" / "spark-pipeline.yml"
    spec.write_text(f"{spec.read_text()}{WITHOUT_RETRIES}")
    code, said = program.end(program.start())
    assert code != 0
    assert "each flow of a declarative pipeline, needs a sink of its own" in said
    assert said.count("Flow another is STARTING") == 1, said
    assert counted(job) == {1: BATCH}
