import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.real.cli.command import free_port


def test_create_and_list(shell):
    assert shell("topics", "create", "list-a", "list-b", "-p", "3").lines == [
        "list-a created",
        "list-b created",
    ]
    lines = shell("topics", "list").lines
    assert lines[0] == "TOPIC PARTITIONS REPLICAS"
    assert {"list-a 3 1", "list-b 3 1"} <= set(lines)
    listed = {each["topic"]: each for each in shell("topics", "list", "--format", "json").json}
    described = listed["list-a"]
    assert len(described.pop("topic_id")) == 22
    assert described == {"topic": "list-a", "internal": False, "partitions": 3, "replicas": 1}


def test_columns_line_up(shell):
    shell("topics", "create", "columns", "-p", "12")
    lines = shell("topics", "list").stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("columns "))
    assert line.index("12") + 2 == lines[0].index("PARTITIONS") + len("PARTITIONS")


def test_create_says_what_came_of_it_in_json(shell):
    created = shell("topics", "create", "created", "-p", "2", "--format", "json").json
    assert created == [{"topic": "created", "changed": True, "partitions": 2, "replicas": 1}]
    again = shell("topics", "create", "created", "--if-not-exists", "--format", "json").json
    assert again == [{"topic": "created", "changed": False}]


def test_create_what_is_there(shell):
    shell("topics", "create", "there")
    assert shell("topics", "create", "there").error == (
        "there: Topic 'there' already exists. (TOPIC_ALREADY_EXISTS)"
    )
    assert shell("topics", "create", "there", "--if-not-exists").lines == [
        "there was there already"
    ]


def test_create_reports_successes_and_failures(shell):
    shell("topics", "create", "old")
    ended = shell("topics", "create", "old", "new")
    assert (ended.exit_code, ended.stdout) == (1, "new created\n")
    assert ended.stderr == "barnabas: old: Topic 'old' already exists. (TOPIC_ALREADY_EXISTS)\n"


def test_a_dry_run_creates_nothing(shell):
    assert shell("topics", "create", "dry", "--dry-run").lines == ["dry would be created"]
    assert "no such topic" in shell("topics", "describe", "dry").error
    assert "(INVALID_CONFIG)" in shell("topics", "create", "dry", "--dry-run", "-X", "x=1").error


def test_describe(shell):
    shell("topics", "create", "described", "-p", "2", "-X", "retention.ms=1000")
    shell("produce", "described", "-p", "1", stdin=b"a\nb\n")
    lines = shell("topics", "describe", "described").lines
    assert lines[0] == "topic described"
    assert lines[1].startswith("id ")
    assert lines[2:] == [
        "partitions 2",
        "replicas 1",
        "config retention.ms=1000",
        "",
        "PARTITION LEADER EPOCH REPLICAS IN SYNC START END",
        "0 1 1 1 1 0 0",
        "1 1 1 1 1 0 2",
    ]


def test_describe_in_json(shell):
    shell("topics", "create", "json", "-X", "retention.ms=1000")
    (described,) = shell("topics", "describe", "json", "--format", "json").json
    assert described["configs"] == [{"key": "retention.ms", "value": "1000", "source": "topic"}]
    assert described["partitions"] == [
        {
            "partition": 0,
            "leader": 1,
            "leader_epoch": 1,
            "replicas": [1],
            "in_sync": [1],
            "start_offset": 0,
            "end_offset": 0,
        }
    ]


def test_describe_with_all_configurations(shell):
    shell("topics", "create", "all", "-X", "retention.ms=1000")
    lines = shell("topics", "describe", "all", "--configs").lines
    assert {"CONFIGURATION VALUE SOURCE", "retention.ms 1000 topic"} <= set(lines)
    assert "cleanup.policy delete default" in lines


def test_describe_waits_for_a_leader_that_moves(own_broker, own_shell):
    own_shell("topics", "create", "moving")
    with own_broker.intercept(LIST_OFFSETS, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2):
        assert own_shell("topics", "describe", "moving").lines[-1] == "0 1 1 1 1 0 0"


def test_describe_what_is_not_there(shell):
    assert shell("topics", "describe", "nowhere").error == (
        "nowhere: no such topic or partition here (UNKNOWN_TOPIC_OR_PARTITION)"
    )


def test_alter(shell):
    shell("topics", "create", "altered", "-X", "retention.ms=1000")
    ended = shell(
        "topics", "alter", "altered", "-p", "4", "-X", "segment.bytes=2000000",
        "--unset", "retention.ms",
    )  # fmt: skip
    assert ended.lines == ["altered altered"]
    (described,) = shell("topics", "describe", "altered", "--format", "json").json
    assert len(described["partitions"]) == 4
    assert [each["key"] for each in described["configs"]] == ["segment.bytes"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("-p", "1"), "(INVALID_PARTITIONS)"),
        (("-X", "retention.ms=soon"), "(INVALID_CONFIG)"),
        (("-X", "no.such.key=1"), "(INVALID_CONFIG)"),
    ],
    ids=["fewer-partitions", "bad-value", "bad-key"],
)
def test_alter_what_cannot_be(shell, change, expected):
    shell("topics", "create", "stays", "-p", "2", "--if-not-exists")
    for dry in ((), ("--dry-run",)):
        error = shell("topics", "alter", "stays", *change, *dry).error
        assert error.startswith("stays: ")
        assert expected in error


def test_alter_nothing(shell):
    ended = shell("topics", "alter", "stays")
    assert ended.exit_code == 2
    assert ended.stderr == "barnabas: no change was given: use -p, -X or --unset\n"


def test_delete(shell):
    shell("topics", "create", "gone-a", "gone-b")
    assert shell("topics", "delete", "gone-a", "gone-b").lines == [
        "gone-a deleted",
        "gone-b deleted",
    ]
    assert shell("topics", "delete", "gone-a").error == (
        "gone-a: no such topic or partition here (UNKNOWN_TOPIC_OR_PARTITION)"
    )
    assert shell("topics", "delete", "gone-a", "--if-exists").lines == ["gone-a was not there"]


# ------------------------------------------------------------------- brokers that are not there


def test_refused_connection_is_reported(shell):
    address = f"127.0.0.1:{free_port()}"
    ended = shell("topics", "list", "-b", address, server=False)
    assert ended.error == f"{address}: Connection refused"


def test_the_second_of_two_is_there(shell):
    both = f"127.0.0.1:{free_port()},{shell.address}"
    assert shell("topics", "list", "--bootstrap-servers", both, server=False).exit_code == 0


def test_unknown_host_is_reported(shell):
    ended = shell("topics", "list", "-b", "no-such-host.invalid:9092", server=False)
    assert ended.error.startswith("no-such-host.invalid:9092: ")


@pytest.mark.parametrize("address", ["localhost", "localhost:0", "::1:9092", ":9092"])
def test_invalid_address_is_rejected(shell, address):
    ended = shell("topics", "list", "-b", address, server=False)
    assert (ended.exit_code, ended.stderr) == (2, f"barnabas: {address} is not HOST:PORT\n")


def test_a_broker_without_the_api(own_broker, own_shell):
    def answer(_context, _request):
        return ApiVersionsResponse(0, [ApiVersion(18, 0, 4)])

    with own_broker.intercept(API_VERSIONS, answer=answer):
        assert own_shell("topics", "list").error == (
            f"{own_shell.address}: the broker speaks no version of Metadata, this client 0-13"
        )


def test_an_older_broker(monkeypatch):
    versions = {"Metadata": 9, "CreateTopics": 4, "DeleteTopics": 5}
    with Broker(max_versions=versions) as broker:
        shell = Shell(monkeypatch, broker.bootstrap_servers)
        assert shell("topics", "create", "old", "-p", "2").lines == ["old created"]
        assert "old 2 1" in shell("topics", "list").lines
        assert shell("topics", "delete", "old").lines == ["old deleted"]
