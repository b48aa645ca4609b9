"""Which server is asked where no -b says so."""

from __future__ import annotations

import pytest

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.profiles import DEFAULT_SERVER, server_of

PROFILES = """
[default]
bootstrap-server = "one:9092"

[staging]
bootstrap-server = "two:9092,three:9092"
"""


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "barnabas").mkdir()
    (tmp_path / "barnabas" / "profiles.toml").write_text(PROFILES)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_without_anything(tmp_path):
    assert server_of(None, {"XDG_CONFIG_HOME": str(tmp_path)}) == DEFAULT_SERVER


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
def test_what_counts(environment, profile, more, expected):
    assert server_of(profile, environment | more) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "Expected '=' after a key"),
        ("a = 1", "a is no table"),
        ("[a]", "profile a has no bootstrap-server"),
        ('[a]\nserver = "x:1"', "profile a has an unknown key server"),
        ("[b]", "there is no profile a"),
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
