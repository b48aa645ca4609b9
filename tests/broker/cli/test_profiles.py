"""The server that a command uses without -b."""

from __future__ import annotations

import pytest

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.profiles import DEFAULT_SERVER, Server, server_of

PROFILES = """
[default]
bootstrap-server = "one:9092"

[staging]
bootstrap-server = "two:9092,three:9092"
command-config = "staging.properties"

[elsewhere]
bootstrap-server = "five:9092"
command-config = "~/client.properties"
"""


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "barnabas").mkdir()
    (tmp_path / "barnabas" / "profiles.toml").write_text(PROFILES)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_without_anything(tmp_path):
    assert server_of(None, {"XDG_CONFIG_HOME": str(tmp_path)}) == Server(DEFAULT_SERVER)


@pytest.mark.parametrize(
    ("profile", "more", "expected"),
    [
        (None, {}, "one:9092"),
        ("staging", {}, "two:9092,three:9092"),
        (None, {"BARNABAS_PROFILE": "staging"}, "two:9092,three:9092"),
        (None, {"BARNABAS_SERVERS": "four:1", "BARNABAS_PROFILE": "staging"}, "four:1"),
        ("default", {"BARNABAS_SERVERS": "four:1"}, "one:9092"),
    ],
)
def test_server_is_taken_by_precedence(environment, profile, more, expected):
    assert server_of(profile, environment | more).addresses == expected


def test_servers_of_the_client_settings_come_last(environment, tmp_path):
    settings = tmp_path / "client.properties"
    settings.write_text("security.protocol=SASL_SSL\nbootstrap.servers=six:9092,seven:9092\n")
    alone = {"XDG_CONFIG_HOME": str(tmp_path / "empty")}
    assert server_of(None, alone, str(settings)) == Server("six:9092,seven:9092")
    assert (
        server_of(None, alone | {"BARNABAS_SERVERS": "four:1"}, str(settings)).addresses == "four:1"
    )
    assert server_of(None, environment, str(settings)).addresses == "one:9092"
    settings.write_text("security.protocol=SASL_SSL\n")
    assert server_of(None, alone, str(settings)) == Server(DEFAULT_SERVER)


def test_settings_go_with_the_server_of_a_profile(environment, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    beside = tmp_path / "barnabas" / "staging.properties"
    assert server_of("staging", environment).command_config == str(beside)
    found = server_of("elsewhere", environment).command_config
    assert found == str(tmp_path / "home" / "client.properties")
    assert server_of(None, environment).command_config is None
    elsewhere = {"BARNABAS_SERVERS": "four:1", "BARNABAS_PROFILE": "staging"}
    assert server_of(None, environment | elsewhere).command_config is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "Expected '=' after a key"),
        ("a = 1", "a is not a table"),
        ("[a]", "profile a has no bootstrap-server"),
        ('[a]\nserver = "x:1"', "profile a has an unknown key server"),
        (
            '[a]\nbootstrap-server = "x:1"\ncommand-config = 1',
            "profile a: command-config is no text",
        ),
        ("[b]", "profile a does not exist"),
    ],
)
def test_mistakes(tmp_path, text, problem):
    path = tmp_path / "profiles.toml"
    path.write_text(text)
    with pytest.raises(CommandError, match=problem):
        server_of("a", {"BARNABAS_PROFILES": str(path)})


def test_commands_go_by_it(shell, monkeypatch):
    monkeypatch.setenv("BARNABAS_SERVERS", shell.address)
    shell("topics", "create", "by-environment")
    assert "by-environment 1 1" in shell("topics", "list", server=False).lines
