import subprocess

import pytest

from broker.version import __version__
from tests.broker.cli.command import barnabas, command, environment, error_of


def test_version(tmp_path):
    result = barnabas("--version", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, f"barnabas {__version__}\n")


@pytest.mark.parametrize("arguments", [(), ("serve",), ("config",), ("ready",)])
def test_help_fits_a_screen(arguments, tmp_path):
    result = barnabas(*arguments, "--help", cwd=tmp_path)
    lines = result.stdout.splitlines()
    assert result.returncode == 0
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "the following arguments are required: command"),
        (("nonsense",), "invalid choice: 'nonsense'"),
        (("serve", "--nonsense"), "unrecognized arguments: --nonsense"),
        (("config", "--format", "xml"), "invalid choice: 'xml'"),
        (("ready", "--timeout", "soon"), "invalid float value: 'soon'"),
    ],
)
def test_wrong_usage_is_one_line(arguments, expected, tmp_path):
    assert expected in error_of(barnabas(*arguments, cwd=tmp_path), 2)


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
        assert process.wait(timeout=30) == 1
