"""The record of Apache Kafka: read, written and compared, without Apache Kafka."""

from __future__ import annotations

import json
import os
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from barnabas.protocol.messages.metadata import MetadataRequestTopic
from tests.counterparts.embedded_barnabas import EmbeddedBarnabas
from tests.interop.recorded_directory import Stopped, pack
from tests.interop.recorded_kafka import DIRECTORY, RecordedKafka, plain, text_of

DAY_S = 86_400
RESULT = {"a": 1, "b": [None, True, "x" * 200], "c": {"d": "e"}}


class Pair(NamedTuple):
    left: int
    right: bytes


class Code(IntEnum):
    NONE = 0


def kafka_of(path: Path, mode: str) -> RecordedKafka:
    return RecordedKafka(path, lambda: "a broker", mode)


def recorded(path: Path, case: str, result: Any, *, is_whole: bool = True) -> str:
    kafka = kafka_of(path, "1")
    assert kafka.observe(case, lambda broker: (broker, result)) == ["a broker", plain(result)]
    kafka.save(is_whole=is_whole)
    return path.read_text()


def test_recorded_result_is_returned_without_a_broker(tmp_path):
    path = tmp_path / "file.json"
    recorded(path, "case", RESULT)
    kafka = RecordedKafka(path, lambda: pytest.fail("started"), "")
    assert kafka.observe("case", lambda _: pytest.fail("called")) == ["a broker", RESULT]


def test_changed_result_does_not_change_the_record(tmp_path):
    path = tmp_path / "file.json"
    recorded(path, "case", RESULT)
    kafka = kafka_of(path, "")
    kafka.observe("case", id)[1].clear()
    assert kafka.observe("case", id)[1] == RESULT


def test_equal_results_of_a_case_are_written_once(tmp_path):
    path = tmp_path / "file.json"
    case = {"v1": RESULT, "v2": RESULT, "v3": [1], "v4": [1]}
    kafka = kafka_of(path, "1")
    kafka.observe("case", lambda _: case)
    kafka.save(is_whole=True)
    assert path.read_text().count("x" * 200) == 1
    assert kafka_of(path, "").observe("case", id) == case


def test_missing_case_names_make_record(tmp_path):
    path = tmp_path / "file.json"
    with pytest.raises(AssertionError, match=r"file\.json has no case 'case'.*make record"):
        kafka_of(path, "").observe("case", id)


def test_record_of_another_version_names_make_record(tmp_path):
    path = tmp_path / "file.json"
    path.write_text('{"broker": "Apache Kafka 1.0", "cases": {"case": 1}}')
    with pytest.raises(AssertionError, match=r"record of Apache Kafka 1\.0.*make record"):
        kafka_of(path, "").observe("case", id)


def test_live_result_that_differs_from_the_record_fails(tmp_path):
    path = tmp_path / "file.json"
    recorded(path, "case", RESULT)
    same = kafka_of(path, "check").observe("case", lambda broker: (broker, RESULT))
    assert same == ["a broker", RESULT]
    with pytest.raises(AssertionError, match="differs from its record"):
        kafka_of(path, "check").observe("case", lambda broker: (broker, {}))


def test_script_runs_once_for_each_case(tmp_path):
    kafka = kafka_of(tmp_path / "file.json", "1")
    calls: list[str] = []
    for _ in range(2):
        assert kafka.observe("case", calls.append) is None
    assert calls == ["a broker"]


def test_failed_script_runs_once_for_each_case(tmp_path):
    kafka = kafka_of(tmp_path / "file.json", "1")
    calls: list[str] = []

    def script(broker: str) -> None:
        calls.append(broker)
        raise ValueError("refused")

    for _ in range(2):
        with pytest.raises(ValueError, match="refused"):
            kafka.observe("case", script)
    assert calls == ["a broker"]


def test_equal_results_are_the_same_file_with_the_same_date(tmp_path):
    path = tmp_path / "file.json"
    text = recorded(path, "case", RESULT)
    path.write_text(text.replace('"date": "20', '"date": "19'))
    assert recorded(path, "case", RESULT) == path.read_text() != text
    assert recorded(path, "case", {}) != text
    assert '"date": "20' in path.read_text()


@pytest.mark.parametrize(("is_whole", "cases"), [(True, {"new"}), (False, {"old", "new"})])
def test_whole_run_removes_cases_that_it_has_not_observed(tmp_path, is_whole, cases):
    path = tmp_path / "file.json"
    recorded(path, "old", 1)
    assert json.loads(recorded(path, "new", 2, is_whole=is_whole))["cases"].keys() == cases


def test_failed_script_leaves_the_record_of_its_case(tmp_path):
    path = tmp_path / "file.json"
    recorded(path, "old", 1)
    kafka = kafka_of(path, "1")
    kafka.observe("new", lambda _: 2)
    with pytest.raises(ZeroDivisionError):
        kafka.observe("old", lambda _: 1 // 0)
    kafka.save(is_whole=True)
    assert json.loads(path.read_text())["cases"] == {"old": ["a broker", 1], "new": 2}


def test_record_of_another_version_is_not_kept_beside_a_new_one(tmp_path):
    path = tmp_path / "file.json"
    path.write_text('{"broker": "Apache Kafka 1.0", "date": "", "cases": {"old": 1}}')
    assert json.loads(recorded(path, "new", 2, is_whole=False))["cases"].keys() == {"new"}


def test_lines_are_short_and_keys_are_sorted():
    text = text_of({"cases": {"b": RESULT, "a": {"z": 1, "y": 2}}})
    assert json.loads(text)["cases"]["b"] == RESULT
    assert ' "a": {"y": 2, "z": 1},\n' in text
    assert text.index('"a": {"y"') < text.index('"b": {')


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\x01\xff", "bytes 01ff"),
        (memoryview(b""), "bytes "),
        (Code.NONE, 0),
        (Pair(1, b"a"), {"left": 1, "right": "bytes 61"}),
        ({1: (2, 3)}, {"1": [2, 3]}),
        ({3, 1, 2}, [1, 2, 3]),
        (MetadataRequestTopic(b"id", "t"), {"topic_id": "bytes 6964", "name": "t"}),
    ],
)
def test_values_become_those_of_json(value, expected):
    found = plain(value)
    assert found == expected
    assert json.loads(json.dumps(found)) == found


def test_value_that_json_lacks_fails():
    with pytest.raises(TypeError, match="a record has no object"):
        plain({"a": [object()]})


def test_every_record_belongs_to_a_test_file():
    here = Path(__file__).parent
    records = {path.stem for path in DIRECTORY.glob("*.json")}
    assert records
    assert records <= {path.stem.removeprefix("test_") for path in here.glob("test_*.py")}


# ------------------------------------------------------------------------------- data directories


def data_directory(path: Path) -> Path:
    (path / "orders-0").mkdir(parents=True)
    (path / "empty").mkdir()
    (path / "orders-0" / "0.log").write_bytes(b"records")
    os.utime(path / "orders-0" / "0.log", (2_000_000_000, 2_000_000_000))
    return path


def test_recorded_directory_is_returned_with_the_time_of_its_last_change(tmp_path):
    path = tmp_path / "file.json"
    recorded(path, "case", RESULT)
    archive = tmp_path / "file" / "case.tar.xz"
    pack(data_directory(tmp_path / "kafka"), archive)
    kafka = RecordedKafka(path, lambda: pytest.fail("started"), "")
    stopped = kafka.stopped("case", lambda _: pytest.fail("called"), tmp_path / "copy")
    assert stopped == (["a broker", RESULT], 2_000_000_000)
    assert (tmp_path / "copy" / "data" / "orders-0" / "0.log").read_bytes() == b"records"
    assert (tmp_path / "copy" / "data" / "empty").is_dir()


def test_case_without_a_directory_says_how_to_record_it(tmp_path):
    path = tmp_path / "file.json"
    recorded(path, "case", RESULT)
    with pytest.raises(AssertionError, match="run `make record`"):
        kafka_of(path, "").stopped("case", id, tmp_path / "copy")


def test_directory_of_a_case_without_a_test_is_removed(tmp_path):
    path = tmp_path / "file.json"
    archives = [tmp_path / "file" / f"{case}.tar.xz" for case in ("case", "old")]
    for archive in archives:
        pack(data_directory(tmp_path / archive.stem), archive)
    recorded(path, "case", RESULT)
    assert [archive.exists() for archive in archives] == [True, False]


def test_barnabas_opens_a_recorded_directory_at_the_time_of_its_last_change(tmp_path):
    barnabas = Stopped(None, 2_000_000_000).open(EmbeddedBarnabas(tmp_path))
    with barnabas:
        assert isinstance(barnabas, EmbeddedBarnabas)
        seconds = barnabas.now_ms() / 1000 - 2_000_000_000
    assert 0 < seconds < DAY_S
