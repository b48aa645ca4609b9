"""`barnabas cluster`: the description of the cluster, settings of its brokers."""

from __future__ import annotations


def test_describe(shell, shared_broker):
    found = shell("cluster", "describe", "--format", "json").json
    host, port = shared_broker.address
    broker = {"id": 1, "host": host, "port": port, "rack": None, "leads": 0, "coming": 0}
    assert found["brokers"] == [broker | {"cordoned": False}]
    assert found["pins"] == []
    assert found["cluster"] == shared_broker.call(lambda: shared_broker.server.cluster_id)
    assert found["features"]["transaction.version"] == 2
    lines = shell("cluster", "describe").lines
    assert lines[0] == f"cluster {found['cluster']}"
    assert lines[-2:] == [
        "BROKER HOST PORT RACK LEADS COMING CORDONED",
        f"1 {host} {port} - 0 0 no",
    ]


def configs(shell, *arguments):
    found = shell("cluster", "configs", *arguments, "--format", "json").json["configs"]
    return {each["key"]: (each["value"], each["source"]) for each in found}


def test_settings_that_were_made(own_shell):
    assert "log.retention.ms" not in configs(own_shell)
    assert own_shell("cluster", "alter", "-X", "log.retention.ms=3600000").lines == [
        "all brokers altered"
    ]
    assert configs(own_shell)["log.retention.ms"] == ("3600000", "cluster")
    assert own_shell("cluster", "alter", "-X", "log.retention.ms=7200000", "--broker", 1).lines == [
        "broker 1 altered"
    ]
    assert configs(own_shell, "log.retention.ms") == {"log.retention.ms": ("7200000", "broker")}
    assert (
        own_shell("cluster", "alter", "--unset", "log.retention.ms", "--broker", 1).exit_code == 0
    )
    assert configs(own_shell)["log.retention.ms"] == ("3600000", "cluster")


def test_settings_last_over_a_restart(own_broker, own_shell):
    own_shell("cluster", "alter", "-X", "message.max.bytes=200000")
    own_broker.restart()
    assert configs(own_shell)["message.max.bytes"] == ("200000", "cluster")


def test_only_asked(own_shell):
    ended = own_shell("cluster", "alter", "-X", "message.max.bytes=200000", "--dry-run")
    assert ended.lines == ["all brokers would be altered"]
    assert "message.max.bytes" not in configs(own_shell)


def test_all_and_some(shell):
    everything = configs(shell, "--all")
    assert len(everything) > 200
    assert configs(shell, "num.partitions") == {"num.partitions": ("1", "default")}
    assert shell("cluster", "configs", "num.partitions").lines == [
        "CONFIGURATION VALUE SOURCE",
        "num.partitions 1 default",
    ]


def test_mistakes(shell):
    assert shell("cluster", "alter").exit_code == 2
    assert shell("cluster", "configs", "no.such.key").exit_code == 2
    assert "Not a number" in shell("cluster", "alter", "-X", "message.max.bytes=x").error
    assert "INVALID_REQUEST" in shell("cluster", "alter", "-X", "node.id=7").error
    assert shell("cluster", "configs", "--broker", 7).exit_code == 1
