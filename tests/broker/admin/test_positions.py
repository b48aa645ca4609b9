"""Positions that operators write, in a partition from offset 10 to 20."""

import pytest

from barnabas.broker.admin.positions import BadPosition, Position


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("beginning", None, 10),
        ("earliest", None, 10),
        ("end", None, 20),
        ("latest", None, 20),
        ("10", None, 10),
        ("+12", None, 12),
        ("20", None, 20),
        ("-3", None, 17),
        ("-30", None, 10),
        ("@1700000000000", 15, 15),
        ("@2023-11-14T22:13:20", 15, 15),
        ("@1700000000000", -1, 20),
    ],
)
def test_position_gives_an_offset_of_the_partition(text, found, expected):
    assert Position.parse(text).within(10, 20, found) == expected


def test_times_are_in_utc_unless_they_have_a_zone():
    times = ("@1700000000000", "@2023-11-14T22:13:20", "@2023-11-14T23:13:20+01:00")
    assert {Position.parse(each).time_ms for each in times} == {1_700_000_000_000}


@pytest.mark.parametrize("text", ["", "soon", "1.5", "1_0", "9" * 20, "@", "@soon", "x" * 1000])
def test_other_texts_are_refused_in_one_short_line(text):
    with pytest.raises(BadPosition) as refused:
        Position.parse(text)
    assert len(str(refused.value)) < 110


@pytest.mark.parametrize("text", ["9", "21"])
def test_offset_outside_of_the_partition_is_refused(text):
    with pytest.raises(BadPosition, match="only 10 to 20"):
        Position.parse(text).within(10, 20)
