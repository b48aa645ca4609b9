"""Spark's own source and the exactly-once sinks on a cluster whose brokers die one after the other.

The data source is made of the parts of the two-phase sink, and takes Spark longest to start: it is
left to `make soak-cluster ARGS='--clients spark'`, which does the same for longer.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.counterparts.postgresql_servers import Server
from tests.postgresql.brokers import Member, running
from tests.products import for_the_night
from tests.spark.conftest import SETTINGS
from tests.spark.harness import SparkDriver
from tests.spark.job import SINGLE, TWO_PHASE
from tests.spark.pipelines import write_while_brokers_die
from tests.torture.process_brokers import ProcessBrokers

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

BROKERS = 3
SINKS = (SINGLE, TWO_PHASE)


@for_the_night(
    beside="tests/interop/sink_cores/test_clusters.py"
    "::test_batches_continue_after_one_broker_is_lost_and_another_is_cut_off"
)
def test_every_record_once_while_brokers_and_a_driver_die(tmp_path, say):
    with ExitStack() as stack:
        # Both are ready by the time that the brokers are.
        old, new = (stack.enter_context(SparkDriver(tmp_path / each)) for each in ("old", "new"))
        server = stack.enter_context(Server())
        members = [
            Member(tmp_path / f"broker-{number}", server.url, **SETTINGS)
            for number in range(BROKERS)
        ]
        stack.enter_context(running(members))
        brokers = ProcessBrokers(members)
        say(write_while_brokers_die(brokers, old, new, tmp_path, kills=1, sinks=SINKS))
