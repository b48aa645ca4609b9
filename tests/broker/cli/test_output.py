import io
import re
import sys

import pytest

from barnabas.broker.cli import output
from barnabas.broker.cli.output import (
    Progress,
    RowPrinter,
    count_text,
    print_pairs,
    print_table,
    time_text,
)


class Screen(io.StringIO):
    """A stream that people look at."""

    def isatty(self):
        return True


@pytest.fixture
def seconds(monkeypatch):
    """Time for the progress line, moved by hand."""
    now = [0.0]
    monkeypatch.setattr(output, "monotonic", lambda: now[0])
    return now


def watch(monkeypatch, *, error, out):
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(sys, "stdout", out)


def test_progress_line_is_overwritten_and_erased(monkeypatch, seconds):
    screen = Screen()
    watch(monkeypatch, error=screen, out=io.StringIO())
    with Progress() as progress:
        progress.show("too early")
        seconds[0] = 1.0
        progress.show("first")
        progress.show("too soon")
        seconds[0] = 2.0
        progress.show("2nd")
    assert screen.getvalue() == "\rfirst\r2nd  \r     \r"


def test_progress_steps_aside(monkeypatch, seconds):
    screen = Screen()
    watch(monkeypatch, error=screen, out=io.StringIO())
    with Progress() as progress:
        seconds[0] = 1.0
        progress.show("first")
        progress.clear()
        progress.clear()
    assert screen.getvalue() == "\rfirst\r     \r"


@pytest.mark.parametrize(
    ("error", "out", "waits", "shown"),
    [
        (Screen, io.StringIO, False, True),
        (Screen, Screen, False, False),
        (Screen, Screen, True, True),
        (io.StringIO, io.StringIO, True, False),
    ],
    ids=["into-a-pipe", "on-the-screen", "output-at-the-end", "nobody-watches"],
)
def test_progress_does_not_disturb(monkeypatch, seconds, error, out, waits, shown):
    stream = error()
    watch(monkeypatch, error=stream, out=out())
    with Progress(output_waits=waits) as progress:
        seconds[0] = 1.0
        progress.show("x")
    assert bool(stream.getvalue()) == shown


def test_a_table(capsys):
    print_table(("NAME", "N", "X"), [("a", 5, None), ("long name", None, "text")])
    assert capsys.readouterr().out == "NAME       N  X\na          5  -\nlong name  -  text\n"


def test_an_empty_table_has_its_headings(capsys):
    print_table(("NAME", "N"), [])
    assert capsys.readouterr().out == "NAME  N\n"


def test_a_table_without_end_is_printed_as_it_comes(capsys):
    table = RowPrinter(("N",))
    for number in range(100):
        assert capsys.readouterr().out == ""
        table.add((number,))
    assert capsys.readouterr().out.splitlines()[-1] == "99"
    table.add((100,))
    assert capsys.readouterr().out == "100\n"


def test_pairs(capsys):
    print_pairs([("a", 1), ("long", None)])
    assert capsys.readouterr().out == "a     1\nlong  -\n"


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (-1, None),
        (2**63 - 1, None),
    ],
)
def test_times(timestamp, text):
    assert time_text(timestamp) == text


def test_counts():
    assert [count_text(0, "row"), count_text(1, "row"), count_text(2000, "row")] == [
        "0 rows",
        "1 row",
        "2,000 rows",
    ]
    assert count_text(2, "batch", "batches") == "2 batches"


LONG_NAME = "prod." + "a" * 207 + ".last"
NAMED_ROWS = [(LONG_NAME, 3, "1"), ("orders", 12, "1")]


def printed(monkeypatch, stream, columns="80"):
    """Return the lines of a table of topics on a stream."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", stream)
    print_table(("TOPIC", "PARTITIONS", "REPLICAS"), NAMED_ROWS)
    return stream.getvalue().splitlines()


def test_long_names_are_cut_in_the_middle_on_a_terminal(monkeypatch):
    heading, long, short = printed(monkeypatch, Screen())
    assert {len(heading), len(long.ljust(80))} == {80}
    assert re.fullmatch(r"prod\.a+\.\.\.a+\.last +3  1", long)
    assert re.fullmatch("orders +12  1", short)


def test_names_are_whole_where_they_fit_or_where_a_program_reads(monkeypatch):
    assert printed(monkeypatch, Screen(), "300")[1].startswith(f"{LONG_NAME}  ")
    assert printed(monkeypatch, io.StringIO())[1].startswith(f"{LONG_NAME}  ")


def test_narrow_terminal_keeps_part_of_each_name(monkeypatch):
    long = printed(monkeypatch, Screen(), "5")[1]
    assert re.fullmatch(r"prod\.a{6}\.\.\.a{5}\.last +3  1", long)


def test_values_are_whole_on_a_terminal(monkeypatch):
    screen = Screen()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", screen)
    print_table(("CONFIGURATION", "VALUE"), [("sasl.jaas.config", "x" * 200)])
    assert "x" * 200 in screen.getvalue()
