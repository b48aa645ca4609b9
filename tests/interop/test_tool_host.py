"""A JVM that runs Kafka's tools in turn prints and exits as the tools do on their own."""

from __future__ import annotations

import re
import subprocess

import pytest
from py4j import java_gateway, protocol

from tests.counterparts import kafka_tools
from tests.counterparts.kafka_tools import ToolResult, run_tool, run_tool_alone
from tests.counterparts.tool_host import HostEnded, ToolHost, run_hosted
from tests.products import case, for_the_night

CLUSTER = "org.apache.kafka.tools.ClusterTool"
"""A tool whose parser of arguments calls `System.exit`."""
A_FAILURE = "a broker's error"
COMMANDS = {
    "success": (kafka_tools.TOPICS, "--describe"),
    A_FAILURE: (kafka_tools.TOPICS, "--describe", "--topic", "gone"),
    "an unknown option": (kafka_tools.TOPICS, "--nonsense"),
    "no option": (kafka_tools.CONSUMER_GROUPS,),
}


def printed(result: ToolResult) -> ToolResult:
    """Return the result without times and the lines of stack traces."""
    lines = [line for line in result.output.splitlines() if not line.startswith("\tat ")]
    return result._replace(output=re.sub(r"^\S+Z ", "", "\n".join(lines), flags=re.MULTILINE))


@pytest.mark.parametrize("name", [case(each, in_test=each == A_FAILURE) for each in COMMANDS])
def test_hosted_tool_prints_and_exits_as_alone(broker, name):
    main_class, *arguments = COMMANDS[name]
    where = ("--bootstrap-server", broker.bootstrap_servers)
    alone = printed(run_tool_alone(main_class, *where, *arguments))
    assert printed(run_tool(main_class, *where, *arguments)) == alone
    assert (alone.exit_code == 0) == (name == "success")


@pytest.mark.parametrize("name", COMMANDS)
def test_hosted_tool_exits_the_same_beside_pyspark(broker, name, monkeypatch):
    """PySpark replaces what py4j raises of all gateways, and asks its own JVM about it."""
    from pyspark.errors.exceptions.captured import capture_sql_exception

    main_class, *arguments = COMMANDS[name]
    where = ("--bootstrap-server", broker.bootstrap_servers)
    plain = printed(run_tool(main_class, *where, *arguments))
    replaced = capture_sql_exception(protocol.get_return_value)
    monkeypatch.setattr(java_gateway, "get_return_value", replaced)
    assert printed(run_tool(main_class, *where, *arguments)) == plain


@for_the_night(beside="tests/interop/test_tool_host.py::test_hosted_tool_prints_and_exits_as_alone")
def test_tools_with_static_counts_run_again_in_the_same_process(broker, create_topic):
    where = ("--bootstrap-server", broker.bootstrap_servers, "--topic", create_topic())
    host = ToolHost()
    try:
        for _ in range(2):
            produced = run(host, kafka_tools.CONSOLE_PRODUCER, *where, stdin="one\ntwo\n")
            assert produced.exit_code == 0, produced.output
            read = run(host, kafka_tools.CONSOLE_CONSUMER, *where, *FROM_THE_START)
            assert "Processed a total of 2 messages" in read.output
            assert host.is_reusable
    finally:
        host.close()


FROM_THE_START = ("--partition", "0", "--offset", "earliest", "--max-messages", "2")


def run(host: ToolHost, main_class: str, *arguments: str, stdin: str = "") -> ToolResult:
    return ToolResult(*host.run(main_class, arguments, stdin, {}, timeout_s=60))


@for_the_night(beside="tests/interop/test_tool_host.py::test_hosted_tool_prints_and_exits_as_alone")
def test_host_with_a_thread_of_a_tool_is_not_reused(broker):
    host = ToolHost()
    try:
        where = ("--bootstrap-server", broker.bootstrap_servers)
        assert run(host, kafka_tools.TRANSACTIONS, *where, "list").exit_code == 0
        assert not host.is_reusable
    finally:
        host.close()


def test_tool_that_ends_its_jvm_is_named():
    with pytest.raises(HostEnded, match=f"{CLUSTER} ended its JVM with 1: name it in"):
        run_tool(CLUSTER, "nonsense")


def test_tool_that_takes_too_long_raises(broker, create_topic):
    where = ("--bootstrap-server", broker.bootstrap_servers, "--topic", create_topic())
    with pytest.raises(subprocess.TimeoutExpired):
        run_hosted(kafka_tools.CONSOLE_CONSUMER, where, stdin="", properties={}, timeout_s=3)
