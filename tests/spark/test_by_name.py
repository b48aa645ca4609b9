"""format("barnabas") where nothing is registered: the examples, killed with -9 and run again.

They run from the wheel, outside of this checkout. full_by_name.py has all places and all ways, in
an environment that pip has made.
"""

from __future__ import annotations

import pytest

from tests.products import for_the_night
from tests.spark.job import DATA_SOURCE, Job
from tests.spark.judge import feed, judge
from tests.spark.programs import CONNECT, DECLARATIVE, Installed, Program, unpacked_wheel

pytestmark = [pytest.mark.timeout(1200), pytest.mark.slow]

BATCH = 200
RECORDS = 2 * BATCH
PLACES = ("C4-before", "C4-after")
"""Right before and after the decision."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Installed:
    return unpacked_wheel(tmp_path_factory.mktemp("unpacked"))


@for_the_night(beside="tests/interop/sink_cores/test_crashes.py::test_a_crash_at_every_step")
@pytest.mark.parametrize("way", [CONNECT, DECLARATIVE])
def test_killed_queries_of_the_examples_write_each_record_once(way, barnabas, unpacked, tmp_path):
    servers = barnabas.bootstrap_servers
    jobs = [
        Job(servers, DATA_SOURCE, f"{way}-{number}", str(tmp_path / f"{number}"), BATCH)
        for number in range(len(PLACES))
    ]
    for job in jobs:
        feed(job, range(RECORDS))
    program = Program(way, tmp_path / way, jobs, unpacked)
    program.write()
    program.run_until(PLACES)
    program.run()
    for job in jobs:
        judge([barnabas], program.judged(job), RECORDS)
