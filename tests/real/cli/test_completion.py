"""Completion in a real bash; zsh runs the same functions through its bashcompinit."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from barnabas.broker.cli.commands.completion import script
from barnabas.broker.cli.main import COMMANDS, parser_with
from barnabas.broker.config.broker_config import BROKER_CONFIGS
from tests.real.cli.command import barnabas


@pytest.fixture(scope="module")
def complete():
    """Complete the last of some words, as bash does when TAB is pressed."""
    text = script(parser_with(COMMANDS), "bash")

    def completed(*words):
        line = " ".join(map(shlex.quote, ("barnabas", *words)))
        pressed = (
            f"compopt() {{ :; }}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}\n"
            f"_barnabas barnabas {shlex.quote(words[-1])}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        )
        ended = subprocess.run(
            ["bash"], input=text + pressed, capture_output=True, text=True, check=True
        )
        assert ended.stderr == ""
        return ended.stdout.split()

    return completed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["topi"], ["topics"]),
        (["topics", "cr"], ["create"]),
        (["topics", "-b", "localhost:9092", "cr"], ["create"]),
        (["topics", "create", "topics", "--parti"], ["--partitions"]),
        (["consume", "orders", "--isolation", "read_u"], ["read_uncommitted"]),
        (["serve", "-X", "num.par"], ["num.partitions="]),
        (["serve", "--override", "num.par"], ["num.partitions="]),
        (["consume", "orders", "--command-config", ""], []),
        (["serve", "server."], []),
        (["completion", ""], ["-h", "--help", "bash", "zsh"]),
        (["nothing", "topi"], ["topics"]),
    ],
)
def test_word_is_completed(complete, words, expected):
    assert complete(*words) == expected


def test_all_commands_and_keys_are_offered(complete):
    assert set(complete("")) >= set(COMMANDS)
    assert {each.removesuffix("=") for each in complete("serve", "-X", "")} == set(BROKER_CONFIGS)


def test_old_name_of_a_verb_is_not_offered(complete):
    verbs = complete("groups", "")
    assert "reset-offsets" in verbs
    assert "seek" not in verbs


def test_script_for_each_shell_is_printed(tmp_path):
    bash, zsh = (barnabas("completion", each, cwd=tmp_path).stdout for each in ("bash", "zsh"))
    assert zsh == f"autoload -Uz +X compinit bashcompinit && compinit && bashcompinit\n{bash}"
    assert bash.endswith("complete -o default -F _barnabas barnabas\n")
