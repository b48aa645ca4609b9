import json

import pytest

from barnabas.broker.config.broker_config import BROKER_CONFIGS
from tests.real.cli.command import barnabas, error_of


def as_json(*arguments, cwd, env=None):
    result = barnabas("config", "--format", "json", *arguments, cwd=cwd, env=env)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def entry(printed, key):
    return next(each for each in printed["config"] if each["key"] == key)


def test_every_key_its_value_and_its_source(tmp_path):
    (tmp_path / "server.properties").write_text("num.partitions=3\nlog.retention.hours=1\nx.y=1\n")
    printed = as_json(
        "server.properties",
        "-Xlog.segment.bytes=2097152",
        cwd=tmp_path,
        env={"KAFKA_LOG_RETENTION_HOURS": "2", "KAFKA_HEAP_OPTS": "-Xmx1g"},
    )
    assert [each["key"] for each in printed["config"]] == list(BROKER_CONFIGS)
    values = {
        key: (entry(printed, key)["value"], entry(printed, key)["source"])
        for key in ("num.partitions", "log.retention.hours", "log.segment.bytes", "node.id")
    }
    assert values == {
        "num.partitions": ("3", "server.properties line 1"),
        "log.retention.hours": ("2", "environment KAFKA_LOG_RETENTION_HOURS"),
        "log.segment.bytes": ("2097152", "--override"),
        "node.id": ("1", "default"),
    }
    assert (printed["ignored"], printed["unknown"]) == (["KAFKA_HEAP_OPTS"], ["x.y"])
    assert entry(printed, "cluster.id")["value"] is None


def test_text_has_a_line_for_every_key(tmp_path):
    result = barnabas("config", "--override", "num.partitions=7", cwd=tmp_path)
    lines = result.stdout.splitlines()
    assert len(lines) == len(BROKER_CONFIGS)
    assert [line.split()[0] for line in lines] == list(BROKER_CONFIGS)
    (line,) = (line for line in lines if line.startswith("num.partitions "))
    assert line.split() == ["num.partitions", "7", "--override"]


def test_text_names_what_was_not_used(tmp_path):
    (tmp_path / "server.properties").write_text("x.y=1\nnum.io.threads=8\n")
    result = barnabas("config", "server.properties", cwd=tmp_path)
    assert result.stderr == "ignored: num.io.threads\nunknown: x.y\n"


def test_latin_1_is_read_where_utf_8_fails(tmp_path):
    (tmp_path / "server.properties").write_bytes(b"broker.rack=caf\xe9\n")
    assert entry(as_json("server.properties", cwd=tmp_path), "broker.rack")["value"] == "café"
    (tmp_path / "server.properties").write_bytes("\ufeffbroker.rack=café\n".encode())
    assert entry(as_json("server.properties", cwd=tmp_path), "broker.rack")["value"] == "café"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("num.partitions=zero", "Invalid value zero for configuration num.partitions: Not a numb"),
        (
            "num.partitions=0",
            "Value must be at least 1; accepted: whole number, from 1 (--override)",
        ),
        ("num.partitons=3", "unknown key num.partitons, did you mean num.partitions?"),
        ("zzz=3", "unknown key zzz"),
        ("num.partitions", "--override num.partitions: must be key=value"),
        ("listeners=X://:9093", "Listener name X is missing in listener.security.protocol.map"),
        ("log.dirs=/a,/b", "Several data directories are not supported"),
    ],
)
def test_bad_keys_and_values_are_one_line(override, expected, tmp_path):
    assert expected in error_of(barnabas("config", "-X", override, cwd=tmp_path), 2)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "server.properties: No such file or directory"),
        ("a=\\u12\n", "server.properties: line 1: malformed \\uXXXX escape"),
        (
            "\nnode.id=x\n",
            "Not a number of type INT; accepted: whole number, from 0 (server.properties line 2)",
        ),
    ],
)
def test_bad_files_are_one_line(content, expected, tmp_path):
    if content is not None:
        (tmp_path / "server.properties").write_text(content)
    assert expected in error_of(barnabas("config", "server.properties", cwd=tmp_path), 2)


def test_a_directory_is_no_file(tmp_path):
    assert "Is a directory" in error_of(barnabas("config", ".", cwd=tmp_path), 2)
