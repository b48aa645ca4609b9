"""Apache Kafka's command-line tools, run by main class."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.counterparts.class_archive import TOOLS, archive_options
from tests.counterparts.jars import kafka_class_path
from tests.counterparts.java import java
from tests.counterparts.tool_host import JVM_OPTIONS, run_hosted

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
BROKER_API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
GROUPS = "org.apache.kafka.tools.GroupsCommand"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
REASSIGN_PARTITIONS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LEADER_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
STORAGE = "kafka.tools.StorageTool"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
TRANSACTIONAL_MESSAGE_COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"

ALONE = {VERIFIABLE_PRODUCER, VERIFIABLE_CONSUMER, TRANSACTIONS}
"""Tools that need a JVM of their own: the first two write their last lines in hooks of `Runtime`,
the third leaves the thread of its client."""

_LIST_OF_ACLS = "Current ACLs for resource"


class ToolResult(NamedTuple):
    """The exit code of a tool and its output on both streams."""

    exit_code: int
    output: str


def run_tool(
    main_class: str,
    *arguments: str,
    stdin: str = "",
    timeout_s: float = 300,
    properties: Mapping[str, str] | None = None,
) -> ToolResult:
    """Run one of Kafka's tools to its end, in a JVM that runs others unless it is in ALONE.

    ``properties`` are Java's of this run. Raise TimeoutExpired when it takes too long.
    """
    if main_class in ALONE:
        options = [f"-D{name}={value}" for name, value in (properties or {}).items()]
        return run_tool_alone(
            main_class, *arguments, stdin=stdin, timeout_s=timeout_s, jvm_options=options
        )
    return ToolResult(
        *run_hosted(
            main_class,
            arguments,
            stdin=stdin,
            properties=properties or {},
            timeout_s=timeout_s,
        )
    )


def run_tool_alone(
    main_class: str,
    *arguments: str,
    stdin: str = "",
    timeout_s: float = 300,
    jvm_options: Sequence[str] = (),
) -> ToolResult:
    """Run one of Kafka's tools in a JVM of its own, as its scripts do."""
    result = subprocess.run(
        tool_command(main_class, *arguments, jvm_options=jvm_options),
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return ToolResult(result.returncode, result.stdout)


def tool_command(main_class: str, *arguments: str, jvm_options: Sequence[str] = ()) -> list[str]:
    """Return the command line of one of Kafka's tools; ``jvm_options`` beside a quick start's."""
    options = [*JVM_OPTIONS, *archive_options(TOOLS), *jvm_options]
    return [str(java()), *options, "-cp", kafka_class_path(), main_class, *arguments]


def with_list_of(again: str, output: str) -> str:
    """Return the output of kafka-acls for a change, with the list of ACLs from ``again``.

    Apache Kafka's broker applies a change a moment after its controller has responded, and may list
    the ACLs before the change; the same change repeated changes nothing, and is followed by the
    current list.
    """
    said, _, _ = output.partition(_LIST_OF_ACLS)
    _, heading, listed = again.partition(_LIST_OF_ACLS)
    return f"{said}{heading}{listed}"
