"""Pipelines of a user with just the rights that docs/spark.md lists, and with all but one."""

from __future__ import annotations

import json
import re

import confluent_kafka
import pytest

from barnabas.broker.security.acls.operations import Operation, PatternType, ResourceType
from examples import spark_data
from tests.broker.security.access_users import PASSWORD, acl, add_acls, remove_acls
from tests.counterparts.secured import SecuredBarnabas, client_settings
from tests.counterparts.wire_client import WireClient
from tests.interop.administration import create
from tests.products import for_the_night
from tests.spark.command import start_command
from tests.spark.conftest import SETTINGS
from tests.spark.movements import committed

pytestmark = pytest.mark.timeout(900)

PATIENCE_S = 300
RECORDS = 20
USER = "spark"
LEDGER = "__spark_sink_ledger"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID


def right(operation, kind, name, pattern=PatternType.LITERAL):
    return acl(USER, kind, name, operation, pattern=pattern)


RIGHTS = {
    "read the source": right(Operation.READ, TOPIC, "in"),
    "write the output": right(Operation.WRITE, TOPIC, "out"),
    "read the ledger": right(Operation.READ, TOPIC, LEDGER),
    "write the ledger": right(Operation.WRITE, TOPIC, LEDGER),
    "make the ledger": right(Operation.CREATE, TOPIC, LEDGER),
    "ask for the ledger's settings": right(Operation.DESCRIBE_CONFIGS, TOPIC, LEDGER),
    "read the group": right(Operation.READ, GROUP, "spark.money"),
    "write the ids": right(Operation.WRITE, TRANSACTIONAL_ID, "spark.money", PatternType.PREFIXED),
    "decide about the ids later": right(
        Operation.TWO_PHASE_COMMIT, TRANSACTIONAL_ID, "spark.money", PatternType.PREFIXED
    ),
}
WORDS = {
    "read the source": r"not let this client see in: .*TOPIC_AUTHORIZATION_FAILED",
    "write the output": r"not let this client see out: .*TOPIC_AUTHORIZATION_FAILED",
    "read the ledger": rf"Reading {LEDGER} is not allowed: .*TOPIC_AUTHORIZATION_FAILED",
    "write the ledger": rf"to {LEDGER} is not allowed: .*TOPIC_AUTHORIZATION_FAILED",
    "ask for the ledger's settings": rf"settings of {LEDGER} is not allowed: .*TOPIC_AUTHOR",
    "read the group": r"does not allow spark\.money: .*GROUP_AUTHORIZATION_FAILED",
    "write the ids": r"not allow spark\.money: .*TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}
"""The message for each missing permission. The ledger is created once; without two-phase commit the
sink continues, as with Apache Kafka."""
REFUSED = [
    ("two_phase", ("write the output",)),
    ("two_phase", ("read the source", "write the ledger", "write the ids")),
    (
        "single_transaction",
        ("read the ledger", "ask for the ledger's settings", "read the group"),
    ),
]
"""Each once, since each takes a start of Spark."""
PIPELINE = """
import json
from pathlib import Path
from barnabas.spark import Pipeline, Sink, Source

options = json.loads(Path("options.json").read_text())
money = Pipeline(
    source=Source(topic="in", options=options),
    transform=lambda rows: rows.select("value"),
    sink=Sink(sink_id="money", topic="out", kind="KIND", options=options))
"""


@pytest.fixture
def broker(tmp_path):
    with SecuredBarnabas({USER: PASSWORD}, tmp_path / "broker", **SETTINGS) as running:
        spark_data.create_topics(running.bootstrap_servers, ["in"], 2)
        create(running.bootstrap_servers, "out", partitions=2)
        write(running, range(RECORDS))
        yield running


def write(broker, numbers):
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in numbers:
        producer.produce("in", b"%d" % number)
    assert producer.flush(PATIENCE_S) == 0


def run(broker, directory, kind):
    """Run the pipeline over all records; return exit code, output and errors."""
    options = {f"kafka.{key}": value for key, value in client_settings(USER).items()}
    (directory / "options.json").write_text(json.dumps(options))
    (directory / "pipeline.py").write_text(PIPELINE.replace("KIND", kind))
    with start_command(directory, "pipeline.py", broker.sasl_servers, "--once") as process:
        try:
            output, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    return process.returncode, output, errors


def run_without(broker, directory, kind, name):
    """Remove one permission, run the pipeline until it is refused; return its message."""
    write(broker, [RECORDS])
    with WireClient(broker) as admin:
        remove_acls(admin, [RIGHTS[name]])
        code, output, errors = run(broker, directory, kind)
        add_acls(admin, [RIGHTS[name]])
    assert (code, output) == (1, ""), name
    assert errors.count("\n") == 1, errors
    return errors


@for_the_night(
    beside="tests/spark_connector/test_sender.py::test_permanent_error_is_raised_in_one_sentence"
)
@pytest.mark.parametrize(("kind", "refused"), REFUSED)
def test_with_the_rights_of_the_documentation(broker, tmp_path, kind, refused):
    """A line names the missing permission; once it is back, no record is missing or duplicated."""
    rights = dict(RIGHTS)
    if kind == "single_transaction":
        del rights["decide about the ids later"]
    with WireClient(broker) as admin:
        add_acls(admin, rights.values())
    # A later run needs each permission, except the write permission, which the first run needs.
    if refused != ("write the output",):
        assert run(broker, tmp_path, kind)[::2] == (0, "")
        assert sorted(committed(broker.bootstrap_servers, "out")) == list(range(RECORDS))
    for name in refused:
        assert re.search(WORDS[name], run_without(broker, tmp_path, kind, name)), name
    assert run(broker, tmp_path, kind)[::2] == (0, "")
    extra = [RECORDS] * len(refused)
    assert sorted(committed(broker.bootstrap_servers, "out")) == [*range(RECORDS), *extra]
