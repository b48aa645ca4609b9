import re
import shlex
import subprocess

import pytest

from barnabas.broker.cli.main import COMMANDS
from barnabas.broker.version import __version__
from tests.broker.cli.inline import run_inline
from tests.real.cli.command import barnabas, command, environment, error_of
from tests.real.cli.documentation import help_of

WITH_HELP = [
    (),
    *((command,) for command in COMMANDS),
    *(("topics", verb) for verb in ("list", "describe", "create", "delete", "alter")),
    *(
        ("groups", verb)
        for verb in ("list", "describe", "reset-offsets", "delete", "delete-offsets")
    ),
    *(("cluster", verb) for verb in ("describe", "configs", "alter", "move", "release", "drain")),
    *(("cluster", verb) for verb in ("import", "export", "reopen", "cost")),
    ("records", "delete"),
    ("objects", "sweep"),
    *(("bench", verb) for verb in ("produce", "consume")),
    *(("transactions", verb) for verb in ("list", "describe", "list-blocking", "abort")),
    *(("acls", verb) for verb in ("list", "add", "remove")),
    *(("users", verb) for verb in ("list", "create", "alter", "delete")),
    *(("quotas", verb) for verb in ("list", "set", "remove")),
]


def test_version(tmp_path):
    result = barnabas("--version", cwd=tmp_path)
    assert result.returncode == 0
    kinds = "compiled|pure"
    assert re.fullmatch(rf"barnabas {__version__} \(({kinds}), commit \S.*\)\n", result.stdout)


def test_help_of_a_process(tmp_path):
    result = barnabas("--help", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stdout == help_of()


@pytest.mark.parametrize("arguments", WITH_HELP)
def test_help_fits_a_screen(arguments, monkeypatch):
    result = run_inline(monkeypatch, [*arguments, "--help"])
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert len(lines) <= (24 if arguments else 34)  # The first one lists all commands.
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "the following arguments are required: COMMAND (see barnabas --help)"),
        (("nonsense",), "unknown command nonsense: serve, init, ready, config, cluster, topics,"),
        (("topic", "list"), "unknown command topic, did you mean topics? (see barnabas --help)"),
        (("Groups", "list"), "unknown command Groups, did you mean groups?"),
        (("topics", "lst"), "unknown verb lst, did you mean list? (see barnabas topics --help)"),
        (("acls", "create"), "unknown verb create, did you mean add?"),
        (("quotas", "delete"), "unknown verb delete, did you mean remove?"),
        (("groups", "nonsense"), "verb nonsense: list, describe, reset-offsets, delete, delete-of"),
        (
            ("-b", "localhost:9092", "topics", "list", "--format", "json"),
            "-b must come after the command: barnabas topics list --format json -b localhost:9092",
        ),
        (
            ("topics", "--bootstrap-server=a:1", "list"),
            "must come after the verb: barnabas topics list --bootstrap-server=a:1 (see barnabas",
        ),
        (("-b", "localhost:9092"), "-b must come after the command, which is missing: serve, "),
        (("serve", "--nonsense"), "unrecognized arguments: --nonsense"),
        (("config", "--format", "xml"), "invalid choice: 'xml'"),
        (("ready", "--timeout", "soon"), "argument --timeout: soon is not a number"),
        (("ready", "--timeout", "0"), "0 is not a number of seconds up to 86400"),
        (("topics",), "required: VERB (see barnabas topics --help)"),
        (("topics", "describe"), "required: TOPIC (see barnabas topics describe --help)"),
        (("topics", "create", "a", "-p", "0"), "0 is not between 1 and 2147483647"),
        (("topics", "create", "a", "-p", "two"), "two is not a whole number"),
        (("topics", "create", "a", "-X", "retention.ms"), "retention.ms is not KEY=VALUE"),
        (("produce", "a", "--acks", "2"), "invalid choice: '2'"),
        (("produce", "a", "-K", ""), "the key separator is empty"),
        (("produce", "a", "--input", "json", "-K", ":"), "-K and -Z are for lines, not for JSON"),
        (("consume", "a", "-o", "soon"), "soon is not beginning, end, an offset or @TIME"),
        (("consume", "a", "-o", "@soon"), "soon is no time: milliseconds, or like 2026-01-31T12"),
        (("consume", "a", "-p", "-1"), "-1 is not between 0 and 2147483647"),
        (("consume", "a", "-f", "%x"), "%x means nothing in a template"),
        (("consume", "a", "-f", "%v", "--format", "json"), "a template goes neither with JSON"),
        (("groups", "reset-offsets", "g"), "one of the arguments --to --by is required"),
        (
            ("groups", "reset-offsets", "g", "--to", "end", "-t", ":1"),
            ":1 is not TOPIC or TOPIC:N,N",
        ),
        (
            ("groups", "reset-offsets", "g", "--to", "soon"),
            "soon is not beginning, end, an offset or",
        ),
        (("dump-log",), "required: FILE"),
        (("check", "-d", "/nowhere"), "/nowhere: not a directory"),
        (("consume", "a", "-K", ":", "--format", "json"), "-K does not go with JSON"),
    ],
)
def test_wrong_usage_is_one_line(arguments, expected, monkeypatch):
    result = run_inline(monkeypatch, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = [each for each in result.stderr.splitlines() if each.startswith("barnabas: ")]
    assert expected in line
    assert result.stderr.endswith(f"{line}\n")


def test_wrong_usage_ends_a_process_with_2(tmp_path):
    result = barnabas("topic", "list", cwd=tmp_path)
    assert "unknown command topic, did you mean topics?" in error_of(result, 2)


@pytest.mark.parametrize("old", ["seek", "move", "reset"])
def test_old_verb_works_and_hints_at_the_new_one(old, tmp_path):
    result = barnabas("groups", old, "g", "--to", "end", "-b", "127.0.0.1:1", cwd=tmp_path)
    hint = f"hint: the verb is reset-offsets: barnabas groups reset-offsets (in place of {old})\n"
    assert result.returncode == 1
    assert result.stderr == f"{hint}barnabas: 127.0.0.1:1: Connection refused\n"


@pytest.mark.parametrize(
    ("command_name", "old", "new"),
    [("groups", "seek", "reset-offsets"), ("transactions", "holders", "list-blocking")],
)
def test_lists_omit_old_verbs_and_their_own_help_calls_them_old(
    command_name, old, new, monkeypatch
):
    listed = run_inline(monkeypatch, [command_name, "--help"]).stdout
    assert f" {new} " in listed
    assert old not in listed
    shown = " ".join(run_inline(monkeypatch, [command_name, old, "--help"]).stdout.split())
    assert shown.startswith(f"usage: barnabas {command_name} {new} ")
    assert f"{old} is an old name." in shown


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    with subprocess.Popen(
        command("config"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=120) == 0


def shell(line, tmp_path):
    """Run a command line of the shell, with ``barnabas`` in it."""
    return subprocess.run(
        ["sh", "-c", line.replace("barnabas", shlex.join(command()))],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "exit_code", "error"),
    [
        ("barnabas config > /dev/full", 1, "barnabas: standard output: No space left on device\n"),
        ("barnabas config >&-", 0, ""),
        ("barnabas config 2>&-", 0, ""),
        ("barnabas ready -b 127.0.0.1:1 >&- 2>&-", 1, ""),
        ("barnabas produce t -b 127.0.0.1:1 <&-", 1, "barnabas: 127.0.0.1:1: Connection refused\n"),
        ("barnabas consume t -b 127.0.0.1:1 >&-", 1, "barnabas: 127.0.0.1:1: Connection refused\n"),
    ],
)
def test_streams_that_are_full_or_closed(line, exit_code, error, tmp_path):
    ended = shell(line, tmp_path)
    assert (ended.returncode, ended.stderr) == (exit_code, error)
