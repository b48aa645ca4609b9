"""Files of an image or a package: its defaults, and the path of a mounted file."""

import json

import pytest

from tests.real.cli.command import barnabas, error_of

DEFAULTS = """listeners=PLAINTEXT://:9092,INSIDE://:19092
advertised.listeners=PLAINTEXT://localhost:9092
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT
log.dir=/d
log.dir=/data
"""
LISTENERS = "PLAINTEXT://:9092,INSIDE://:19092"


@pytest.fixture
def image(tmp_path):
    """The environment that the image sets, with its files below a directory of the test."""
    (tmp_path / "defaults").write_text(DEFAULTS)
    return {
        "BARNABAS_DEFAULTS": str(tmp_path / "defaults"),
        "BARNABAS_PROPERTIES": str(tmp_path / "mounted"),
    }


def settings(*arguments, cwd, env):
    result = barnabas("config", "--format", "json", *arguments, cwd=cwd, env=env)
    assert result.returncode == 0, result.stderr
    entries = json.loads(result.stdout)["config"]
    return {each["key"]: (each["value"], each["source"]) for each in entries}


def test_defaults_of_the_image_apply_without_settings(tmp_path, image):
    found = settings(cwd=tmp_path, env=image)
    assert found["listeners"] == (LISTENERS, f"{tmp_path}/defaults line 1")
    assert found["log.dir"] == ("/data", f"{tmp_path}/defaults line 5")
    assert found["num.partitions"] == ("1", "default")


def test_other_settings_do_not_drop_the_defaults(tmp_path, image):
    (tmp_path / "mounted").write_text("num.partitions=3\n")
    found = settings(cwd=tmp_path, env={**image, "KAFKA_NODE_ID": "4"})
    assert found["num.partitions"] == ("3", f"{tmp_path}/mounted line 1")
    assert found["node.id"] == ("4", "environment KAFKA_NODE_ID")
    assert found["listeners"] == (LISTENERS, f"{tmp_path}/defaults line 1")


def test_the_mounted_file_wins_over_the_defaults(tmp_path, image):
    (tmp_path / "mounted").write_text("listeners=PLAINTEXT://:19092\n")
    found = settings(cwd=tmp_path, env=image)
    assert found["listeners"] == ("PLAINTEXT://:19092", f"{tmp_path}/mounted line 1")
    assert found["advertised.listeners"] == (None, "default")


def test_a_file_named_by_hand_wins_over_the_mounted_one(tmp_path, image):
    (tmp_path / "mounted").write_text("num.partitions=3\n")
    (tmp_path / "mine").write_text("num.partitions=5\n")
    found = settings("mine", cwd=tmp_path, env=image)
    assert found["num.partitions"] == ("5", "mine line 1")


def test_listeners_implied_by_the_advertised_ones_override_the_defaults(tmp_path, image):
    advertised = "PLAINTEXT://broker:19092,PLAINTEXT_HOST://localhost:9092"
    protocols = "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT"
    env = {
        "KAFKA_ADVERTISED_LISTENERS": advertised,
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": protocols,
    }
    found = settings(cwd=tmp_path, env={**image, **env})
    assert found["listeners"][0] == "PLAINTEXT://0.0.0.0:19092,PLAINTEXT_HOST://0.0.0.0:9092"


def test_protocols_alone_come_on_top_of_the_defaults(tmp_path, image):
    env = {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT"}
    found = settings(cwd=tmp_path, env={**image, **env})
    assert found["listeners"][0] == LISTENERS
    assert found["listener.security.protocol.map"] == (
        "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT",
        "environment KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
    )


def test_missing_defaults_are_an_error(tmp_path, image):
    (tmp_path / "defaults").unlink()
    result = barnabas("config", cwd=tmp_path, env=image)
    assert error_of(result, 2).endswith("/defaults: No such file or directory")
