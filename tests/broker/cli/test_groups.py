import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.admin.exchange import Rejected
from barnabas.broker.admin.positions import Position
from barnabas.broker.cli.arguments import addresses
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.records import group_member, group_reader
from barnabas.broker.cli.records.group_member import GroupMember, Rebalancing
from barnabas.broker.cli.records.group_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    share_out,
)
from barnabas.broker.cli.records.group_reader import GroupReader
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.sync_group import SYNC_GROUP
from barnabas.storage.runtime.clock import monotonic, sleep
from barnabas.storage.runtime.threads import start_thread, start_timer
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.requests import delete_records_request
from tests.waiting import wait_until


@pytest.fixture
def numbers(shell, request):
    """A topic with 3 partitions of 10 records each; its group has the same name."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    shell("topics", "create", name, "-p", "3")
    for partition in range(3):
        lines = "".join(f"{partition}/{number}\n" for number in range(10))
        shell("produce", name, "-p", partition, stdin=lines.encode())
    return name


EVERYTHING = sorted(f"{partition}/{number}" for partition in range(3) for number in range(10))


@pytest.fixture
def read(shell, numbers):
    """Return a function that consumes ``count`` records of the topic with a group."""
    return lambda count: shell("consume", numbers, "-g", numbers, "-o", "beginning", "-n", count)


def described(shell, group):
    (found,) = shell("groups", "describe", group, "--format", "json").json
    return found


def committed(shell, group):
    return [each["committed_offset"] for each in described(shell, group)["partitions"]]


# -------------------------------------------------------------------------------- list, describe


def test_list(shell, numbers, read):
    read(1)
    lines = shell("groups", "list").lines
    assert lines[0] == "GROUP STATE TYPE PROTOCOL"
    assert f"{numbers} Empty classic consumer" in lines
    listed = shell(
        "groups", "list", "--state", "empty", "--type", "classic", "--format", "json"
    ).json
    assert {
        "group": numbers, "state": "Empty", "type": "classic", "protocol_type": "consumer"
    } in listed  # fmt: skip
    assert numbers not in shell("groups", "list", "--state", "Stable").stdout
    for option in ("--state", "--type"):
        ended = shell("groups", "list", option, "Foo")
        assert ended.exit_code == 2
        assert "Foo is not one of " in ended.stderr
    assert numbers not in shell("groups", "list", "--type", "consumer").stdout


def test_describe_without_members(shell, numbers, read):
    read(30)
    assert shell("groups", "describe", numbers).lines == [
        f"group {numbers}",
        "state Empty",
        "type classic",
        "coordinator 1",
        "lag 0",
        "members 0",
        "",
        "TOPIC PARTITION COMMITTED START END LAG MEMBER",
        f"{numbers} 0 10 0 10 0 -",
        f"{numbers} 1 10 0 10 0 -",
        f"{numbers} 2 10 0 10 0 -",
    ]


def test_lag(shell, numbers, read):
    read(12)
    found = described(shell, numbers)
    assert found["lag"] == 18
    assert sum(each["lag"] for each in found["partitions"]) == 18


def test_describe_with_a_member(shell, numbers):
    with Cluster(addresses(shell.address), 10) as cluster:
        member = GroupMember(cluster, numbers, [numbers])
        assert member.join() == [(numbers, 0), (numbers, 1), (numbers, 2)]
        found = described(shell, numbers)
        lines = shell("groups", "describe", numbers).lines
        member.leave()
    assert (found["state"], found["assignor"]) == ("Stable", "range")
    (seen,) = found["members"]
    assert seen["client"] == "barnabas"
    assert seen["partitions"] == [{"topic": numbers, "partitions": [0, 1, 2]}]
    assert {each["member"] for each in found["partitions"]} == {seen["member"]}
    assert {each["committed_offset"] for each in found["partitions"]} == {None}
    assert lines[-2] == "MEMBER INSTANCE CLIENT HOST PARTITIONS"
    assert lines[-1] == f"{seen['member']} - barnabas {seen['host']} 3"


def test_describe_lists_other_topics_after_a_topic_is_deleted(shell, numbers, read):
    read(30)
    shell("topics", "create", "other", "--if-not-exists")
    shell("groups", "reset-offsets", numbers, "--to", "end", "-t", "other")
    shell("topics", "delete", numbers)
    wait_until(lambda: len(described(shell, numbers)["partitions"]) >= 1)
    assert "other 0 0 0 0 0 -" in shell("groups", "describe", numbers).lines


def test_describe_several(shell, numbers, read):
    read(1)
    lines = shell("groups", "describe", numbers, numbers).lines
    assert lines.count(f"group {numbers}") == 1


@pytest.mark.parametrize("verb", ["describe", "delete"])
def test_a_group_that_is_not_there(shell, verb):
    error = shell("groups", verb, "nobody").error
    assert error == "nobody: no such group (GROUP_ID_NOT_FOUND)"


# ---------------------------------------------------------------------------------- reset-offsets


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (("--to", "beginning"), [0, 0, 0]),
        (("--to", "end"), [10, 10, 10]),
        (("--to", "4"), [4, 4, 4]),
        (("--to", "-4"), [6, 6, 6]),
        (("--to", "@0"), [0, 0, 0]),
        (("--to", "@2100-01-01"), [10, 10, 10]),
        (("--by", "-3"), [7, 7, 7]),
        (("--by", "-99"), [0, 0, 0]),
        (("--by", "99"), [10, 10, 10]),
    ],
    ids=lambda value: "".join(value) if isinstance(value, tuple) else None,
)
def test_seek(shell, numbers, read, move, expected):
    read(30)
    lines = shell("groups", "reset-offsets", numbers, *move).lines
    assert lines[0] == "TOPIC PARTITION OLD NEW"
    assert lines[1] == f"{numbers} 0 10 {expected[0]}"
    assert committed(shell, numbers) == expected
    left = shell("consume", numbers, "-g", numbers, "-e").lines
    assert len(left) == 30 - sum(expected)


def test_reset_offsets_some(shell, numbers, read):
    read(30)
    ended = shell(
        "groups", "reset-offsets", numbers, "--to", "2", "-t", f"{numbers}:0,2", "--format", "json"
    )
    assert ended.json == {
        "group": numbers,
        "changed": True,
        "offsets": [
            {"topic": numbers, "partition": 0, "old_offset": 10, "new_offset": 2},
            {"topic": numbers, "partition": 2, "old_offset": 10, "new_offset": 2},
        ],
    }
    assert committed(shell, numbers) == [2, 10, 2]


def test_reset_offsets_makes_a_group(shell, numbers):
    lines = shell("groups", "reset-offsets", numbers, "--to", "5", "-t", numbers).lines
    assert lines[1:] == [f"{numbers} {partition} - 5" for partition in range(3)]
    assert len(shell("consume", numbers, "-g", numbers, "-e").lines) == 15


def test_a_dry_run_moves_nothing(shell, numbers, read):
    read(30)
    lines = shell("groups", "reset-offsets", numbers, "--to", "0", "--dry-run").lines
    assert lines[1] == f"{numbers} 0 10 0"
    assert committed(shell, numbers) == [10, 10, 10]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--to", "11"), "-0: offset 11 does not exist, only 0 to 10"),
        (("--to", "0", "-t", "nowhere"), "nowhere: no such topic"),
        (("--to", "0", "-t", "{numbers}:3"), "-3: the topic has only 3 partitions"),
        (("--by", "1", "-t", "one"), "one-0: the group has no offset to move by"),
    ],
    ids=["offset", "topic", "partition", "by"],
)
def test_reset_offsets_where_nothing_is(shell, numbers, read, arguments, expected):
    read(30)
    shell("topics", "create", "one", "--if-not-exists")
    words = [word.replace("{numbers}", numbers) for word in arguments]
    assert expected in shell("groups", "reset-offsets", numbers, *words).error
    assert committed(shell, numbers) == [10, 10, 10]


def test_reset_offsets_a_group_that_has_read_nothing(shell):
    ended = shell("groups", "reset-offsets", "nobody", "--to", "end")
    assert ended.exit_code == 2
    assert ended.stderr == ("barnabas: nobody: the group has no offsets yet; name topics with -t\n")


def test_a_group_with_members_stays_where_it_is(shell, numbers, read):
    read(30)
    with Cluster(addresses(shell.address), 10) as cluster:
        member = GroupMember(cluster, numbers, [numbers])
        member.join()
        assert shell("groups", "reset-offsets", numbers, "--to", "0").error == (
            f"{numbers}: the group has 1 member, which must stop first"
        )
        assert shell("groups", "delete", numbers).error == (
            f"{numbers}: group still has members (NON_EMPTY_GROUP)"
        )
        member.leave()


# ----------------------------------------------------------------------------------------- delete


def test_delete(shell, numbers, read):
    read(1)
    assert shell("groups", "delete", numbers).lines == [f"{numbers} deleted"]
    assert numbers not in shell("groups", "list").stdout
    assert shell("groups", "delete", numbers, "--if-exists").lines == [f"{numbers} was not there"]


def test_delete_some(shell, numbers, read):
    read(1)
    ended = shell("groups", "delete", "nobody", numbers, "--format", "json")
    assert ended.exit_code == 1
    assert ended.stderr == "barnabas: nobody: no such group (GROUP_ID_NOT_FOUND)\n"
    assert '"changed": true' in ended.stdout


# --------------------------------------------------------------------------------- while it starts


def test_a_coordinator_that_is_still_loading(own_broker, own_shell):
    fail = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    own_shell("topics", "create", "slow")
    with own_broker.intercept(FIND_COORDINATOR, fail=fail, times=2):
        assert (
            own_shell("groups", "reset-offsets", "slow", "--to", "end", "-t", "slow").exit_code == 0
        )
    with own_broker.intercept(LIST_GROUPS, fail=fail, times=2):
        assert "slow Empty classic -" in own_shell("groups", "list").lines
    with own_broker.intercept(OFFSET_COMMIT, fail=ErrorCode.NOT_COORDINATOR, times=2):
        assert own_shell("groups", "reset-offsets", "slow", "--to", "end").exit_code == 0


def test_a_broker_that_is_too_old(monkeypatch):
    with Broker(max_versions={"FindCoordinator": 3}) as broker:
        shell = Shell(monkeypatch, broker.bootstrap_servers)
        error = shell("groups", "describe", "g").error
    assert error == "groups: the broker is older than Kafka 3.0"


# ------------------------------------------------------------------------------ reading as a group


def test_group_resumes_at_its_committed_offset(shell, numbers, read):
    first = read(17).lines
    assert sum(committed(shell, numbers)) == 17
    second = shell("consume", numbers, "-g", numbers, "-e").lines
    assert sorted(first + second) == EVERYTHING
    assert shell("consume", numbers, "-g", numbers, "-e").lines == []


def test_new_group_starts_at_the_requested_offset(shell, numbers):
    assert shell("consume", numbers, "-g", f"{numbers}-end", "-e").lines == []
    assert len(shell("consume", numbers, "-g", f"{numbers}-2", "-o", "-2", "-e").lines) == 6


def test_a_group_and_partitions(shell, numbers):
    ended = shell("consume", numbers, "-g", "g", "-p", "0")
    assert ended.exit_code == 2
    assert "a group assigns partitions itself" in ended.stderr


@pytest.fixture
def cluster(shell):
    with Cluster(addresses(shell.address), 10) as found:
        yield found


def test_members_share_the_partitions(shell, numbers):
    with (
        Cluster(addresses(shell.address), 10) as one,
        Cluster(addresses(shell.address), 10) as two,
    ):
        first, second = (GroupMember(each, numbers, [numbers]) for each in (one, two))
        assert len(first.join()) == 3
        shares = {}
        joining = start_thread("joins", lambda: shares.update(second=second.join()))
        shares["first"] = rejoined(first)
        joining.join(60)
        assert sorted(shares["first"] + shares["second"]) == [(numbers, n) for n in range(3)]
        assert {len(share) for share in shares.values()} == {1, 2}
        second.leave()
        assert len(rejoined(first)) == 3
        first.leave()
    assert described(shell, numbers)["members"] == []


def rejoined(member):
    """Heartbeat until the group wants its members to join again, then do it."""
    deadline = monotonic() + 60
    while monotonic() < deadline:
        member._heartbeat_due_s = 0.0
        try:
            member.heartbeat()
        except Rebalancing:
            return member.join()
        sleep(0.02)
    raise TimeoutError("no rebalance")


def reader(cluster, topic, *, to_the_end=False):
    opened = GroupReader(
        cluster, topic, [topic], Position.parse("beginning"),
        isolation="read_committed", to_the_end=to_the_end,
    )  # fmt: skip
    opened.open()
    return opened


def test_unprinted_records_are_not_committed(shell, numbers, cluster, monkeypatch):
    monkeypatch.setattr(group_reader, "COMMIT_SECONDS", 0.0)
    mine = reader(cluster, numbers)
    records = mine.poll()
    for _ in range(5):
        next(records)
    mine.close()
    assert committed(shell, numbers) == [] or sum(filter(None, committed(shell, numbers))) == 0
    again = reader(cluster, numbers)
    while sum(again._consumer.positions.values()) < 30:
        for _ in again.poll():
            pass
        again.printed()
    again.close()
    assert sum(committed(shell, numbers)) == 30


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
@pytest.mark.parametrize("api", [HEARTBEAT, OFFSET_COMMIT], ids=["heartbeat", "commit"])
def test_a_member_that_was_forgotten_joins_again(own_broker, own_shell, monkeypatch, api, code):
    monkeypatch.setattr(group_reader, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(group_member, "HEARTBEAT_SECONDS", 0.0)
    own_shell("topics", "create", "t")
    own_shell("produce", "t", stdin=b"a\nb\n")
    with Cluster(addresses(own_shell.address), 10) as cluster:
        mine = reader(cluster, "t")
        assert [each.value for each in mine.poll()] == [b"a", b"b"]
        # The broker still has the member, so the rebalance waits for the end of its session.
        start_timer("advances", 0.5, lambda: own_broker.clock.advance(minutes=1))
        with own_broker.intercept(api, fail=code, times=2) as caught:
            mine.printed()
            assert caught.count >= 1
        again = [each.value for each in mine.poll()]
        mine.printed()
        mine.close()
    # What could not be committed is read once more; what was, is not.
    assert again == ([b"a", b"b"] if api is OFFSET_COMMIT else [])
    assert committed(own_shell, "t") == [2]


def test_ctrl_c_while_an_answer_is_due(own_broker, own_shell):
    own_shell("topics", "create", "t")
    own_shell("produce", "t", stdin=b"a\nb\n")

    def interrupted(_connection):
        raise KeyboardInterrupt

    with Cluster(addresses(own_shell.address), 10) as cluster:
        mine = reader(cluster, "t")
        list(mine.poll())
        mine._printed = dict(mine._consumer.positions)
        request = HeartbeatRequest("t", 0, "nobody", None)
        mine._member._connection.send(HEARTBEAT, request)
        with pytest.raises(KeyboardInterrupt):
            mine._member._with_coordinator(interrupted)
        mine.close()
    assert committed(own_shell, "t") == [2]
    assert described(own_shell, "t")["members"] == []


def test_a_rebalance_in_the_middle_of_joining(own_broker, own_shell):
    own_shell("topics", "create", "t")
    with (
        own_broker.intercept(SYNC_GROUP, fail=ErrorCode.REBALANCE_IN_PROGRESS, times=2),
        Cluster(addresses(own_shell.address), 10) as cluster,
    ):
        member = GroupMember(cluster, "t", ["t"])
        assert member.join() == [("t", 0)]
        member.leave()


def test_a_coordinator_that_restarts(own_broker, own_shell, monkeypatch):
    monkeypatch.setattr(group_reader, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(group_member, "HEARTBEAT_SECONDS", 0.0)
    own_shell("topics", "create", "t")
    own_shell("produce", "t", stdin=b"a\nb\n")
    with Cluster(addresses(own_shell.address), 10) as cluster:
        mine = reader(cluster, "t")
        assert [each.value for each in mine.poll()] == [b"a", b"b"]
        mine.printed()
        own_broker.crash()
        own_broker.restart()
        own_shell("produce", "t", stdin=b"c\n")
        found = []
        while not found:
            mine.printed()
            found = [each.value for each in mine.poll()]
        mine.printed()
        mine.close()
    assert found == [b"c"]
    assert committed(own_shell, "t") == [3]


def test_more_members_than_partitions(shell, numbers, cluster):
    mine = reader(cluster, numbers, to_the_end=True)
    mine._consumer.positions.clear()
    started = monotonic()
    assert list(mine.poll()) == []
    assert monotonic() - started > 0.3
    mine.close()


def test_offsets_of_a_topic_can_be_deleted(shell, numbers, read):
    read(30)
    assert shell("groups", "delete-offsets", numbers, "-t", f"{numbers}:0,2").lines == [
        f"{numbers}-0 deleted",
        f"{numbers}-2 deleted",
    ]
    assert committed(shell, numbers) == [10]
    found = shell("groups", "delete-offsets", numbers, "-t", numbers, "--format", "json").json
    assert [each["partition"] for each in found["deleted"]] == [0, 1, 2]
    assert "GROUP_ID_NOT_FOUND" in shell("groups", "delete-offsets", "nope", "-t", numbers).error


def test_a_group_of_several_topics(own_shell):
    for topic in ("orders-a", "orders-b", "prices"):
        own_shell("topics", "create", topic)
        own_shell("produce", topic, stdin=f"{topic}\n".encode())
    ended = own_shell("consume", "orders-*", "-g", "g", "-o", "beginning", "-e")
    assert sorted(ended.lines) == ["orders-a", "orders-b"]
    described = own_shell("groups", "describe", "g", "--format", "json").json[0]
    assert [each["topic"] for each in described["partitions"]] == ["orders-a", "orders-b"]


@pytest.mark.parametrize(("where", "lines"), [("beginning", ["c", "d"]), ("end", [])])
def test_a_committed_offset_behind_the_log_start(own_broker, own_shell, where, lines):
    own_shell("topics", "create", "t")
    own_shell("produce", "t", stdin=b"a\nb\nc\nd\n")
    own_shell("consume", "t", "-g", "t", "-o", "beginning", "-n", "1")
    with Cluster(addresses(own_shell.address), 10) as cluster:
        cluster.any().ask(DELETE_RECORDS, delete_records_request({("t", 0): 2}))
    ended = own_shell("consume", "t", "-g", "t", "-e", "-o", where)
    assert ended.stdout.split() == lines
    assert ended.stderr == (
        "barnabas: t-0: committed offset 1 is not there any more, only 2 to 4; "
        "reading begins as --offset says\n"
    )


# ----------------------------------------------------------------------------- what members say


@given(st.integers(0, 50), st.lists(st.text(max_size=3), min_size=1, max_size=9, unique=True))
def test_every_partition_goes_to_one_member(count, members):
    shares = share_out(count, members)
    assert sorted(number for share in shares.values() for number in share) == list(range(count))
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    assert list(shares) == members


def test_assignment_and_subscription_of_members_are_decoded():
    share = {"a": [0, 2], "b": [1]}
    assert decode_assignment(encode_assignment(share)) == [("a", 0), ("a", 2), ("b", 1)]
    assert decode_subscription(encode_subscription(["a", "b", "a"])) == ["a", "b"]


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\x7f\xff\0\0\0\1", b"anything else"])
def test_invalid_assignment_decodes_to_no_partitions(data):
    assert decode_assignment(data) == []


def test_invalid_subscription_is_rejected():
    with pytest.raises(Rejected, match="a member's topics cannot be read"):
        decode_subscription(b"\0")
