"""`barnabas records delete`."""

from __future__ import annotations

import pytest


@pytest.fixture
def topic(shell, request):
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    shell("topics", "create", name, "-p", "2")
    for partition in range(2):
        lines = "".join(f"{partition}/{number}\n" for number in range(10))
        shell("produce", name, "-p", partition, stdin=lines.encode())
    return name


def left(shell, topic):
    return sorted(shell("consume", topic, "-o", "beginning", "-e").lines)


@pytest.mark.parametrize(
    ("where", "count"), [("4", 6), ("-3", 3), ("end", 0), ("@2099-01-01", 0), ("@0", 10)]
)
def test_before(shell, topic, where, count):
    lines = shell("records", "delete", topic, "--before", where).lines
    assert lines == [
        "TOPIC PARTITION OLD START NEW START",
        f"{topic} 0 0 {10 - count}",
        f"{topic} 1 0 {10 - count}",
    ]
    expected = [f"{partition}/{n}" for partition in range(2) for n in range(10 - count, 10)]
    assert left(shell, topic) == sorted(expected)


def test_some_partitions(shell, topic):
    shell("records", "delete", f"{topic}:1", "--before", "end")
    assert left(shell, topic) == [f"0/{number}" for number in range(10)]


def test_only_shown(shell, topic):
    found = shell("records", "delete", topic, "--before", "5", "--dry-run", "--format", "json").json
    assert found["changed"] is False
    assert [each["new_start"] for each in found["partitions"]] == [5, 5]
    assert len(left(shell, topic)) == 20


def test_mistakes(shell, topic):
    assert shell("records", "delete", topic).exit_code == 2
    assert shell("records", "delete", topic, "--before", "beginning").exit_code == 2
    assert "only 0 to 10" in shell("records", "delete", topic, "--before", "11").error
    assert "UNKNOWN_TOPIC" in shell("records", "delete", "nope", "--before", "1").error
    assert "only 2 partitions" in shell("records", "delete", f"{topic}:5", "--before", "1").error
