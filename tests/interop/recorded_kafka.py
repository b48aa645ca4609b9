"""Observations of Apache Kafka, made once and kept in tests/interop/recorded/.

A test gives `kafka.observe` the name of a case and a script: a function that receives a running
Apache Kafka and returns plain data. The environment variable RECORD decides what that means:

- empty, as in `make test`: the result comes from the record, and no Apache Kafka starts;
- `1`, as in `make record`: the script runs, and its result is written into the record;
- `check`, as in `make nightly`: the script runs, and its result must be equal to the record.
"""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.embedded_barnabas import EmbeddedBarnabas
from tests.counterparts.secured import Secured
from tests.interop.recorded_directory import Stopped, pack, unpack

MODE = os.environ.get("RECORD", "")
MODES = ("", "1", "check")
assert MODE in MODES, f"RECORD={MODE} is none of {', '.join(map(repr, MODES))}"
IS_LIVE = bool(MODE)
"""Whether Apache Kafka runs beside Barnabas."""
Barnabas: type[BrokerProcess] = BarnabasProcess if IS_LIVE else EmbeddedBarnabas
"""The Barnabas that a test compares with the record: a process where Apache Kafka is one, too."""


class SecuredBarnabas(Secured, Barnabas):  # type: ignore[misc,valid-type]
    """The same with the listeners of `Secured`."""


DIRECTORY = Path(__file__).parent / "recorded"
LINE_LENGTH = 160
SAME_AS = "same as"
"""In place of a result that another label of the case has, too: most versions of an API agree."""
DATA = "data"
"""Name of the data directory in that of a broker."""
CLEAN_OR_KILLED = {0, 143, -9}
"""Exit codes of an Apache Kafka after SIGTERM, and after a script that has killed it."""
SHORT = 40
"""Longest result that is always written in full."""
SHOWN_MOST = 5
"""Differences in the message of a failure."""


def plain(value: Any) -> Any:
    """Return ``value`` in the types of JSON; equal values become equal data."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int | str):
        return int(value) if isinstance(value, int) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"bytes {bytes(value).hex()}"
    if isinstance(value, Enum):
        return plain(value.value)
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(each) for each in value), key=repr)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    raise TypeError(f"a record has no {type(value).__name__}: {value!r}")


class RecordedKafka:
    """The record of one test file; starts Apache Kafka by ``start`` at the first live script."""

    def __init__(self, path: Path, start: Callable[[], Any], mode: str = MODE) -> None:
        self._path = path
        self._start = start
        self._mode = mode
        self._record: dict[str, Any] = {}
        if path.exists():
            self._record = json.loads(path.read_text(encoding="utf-8"))
            cases = self._record.get("cases", {})
            self._record["cases"] = {case: expanded(each) for case, each in cases.items()}
        self._observed: dict[str, Any] = {}
        self._failed: dict[str, Exception] = {}

    def observe(self, case: str, script: Callable[[Any], Any]) -> Any:
        """Return the plain data that ``script`` returns of Apache Kafka, once for each case."""
        if not self._mode:
            return copy.deepcopy(self._recorded(case))
        if case not in self._observed:
            if case in self._failed:
                # Many tests may share a script of a minute.
                raise self._failed[case]
            self._run(case, script, self._start)
        return copy.deepcopy(self._observed[case])

    def stopped(
        self, case: str, script: Callable[[Any], Any], directory: Path, **settings: str
    ) -> Stopped:
        """Fill ``directory`` as an Apache Kafka does that runs ``script`` and stops.

        ``settings`` are those of Apache Kafka. In `make test` its data directory comes from an
        archive beside the record. `make record` replaces the archive if the observations change;
        delete the archive to have it replaced at the next `make record`.
        """
        archive = self._archives / f"{case}.tar.xz"
        if not self._mode:
            assert archive.exists(), f"{archive} does not exist: run `make record`"
            left_s = unpack(archive, directory / DATA)
            return Stopped(self.observe(case, script), left_s)
        with ApacheKafka(directory, **settings) as kafka:
            self._run(case, script, lambda: kafka)
            assert kafka.terminate() in CLEAN_OR_KILLED
        observed = copy.deepcopy(self._observed[case])
        if self._mode == "1" and not (archive.exists() and self._is_recorded(case, observed)):
            pack(directory / DATA, archive)
        return Stopped(observed, None)

    @property
    def _archives(self) -> Path:
        return self._path.with_suffix("")

    def _is_recorded(self, case: str, observed: Any) -> bool:
        """Whether the record of this version of Apache Kafka has these observations."""
        is_new = self._record.get("broker") != ApacheKafka.name
        return not is_new and self._record.get("cases", {}).get(case) == observed

    def _run(self, case: str, script: Callable[[Any], Any], start: Callable[[], Any]) -> None:
        try:
            self._observed[case] = plain(script(start()))
        except Exception as error:
            self._failed[case] = error
            raise
        if self._mode == "check":
            name = f"{self._path.name}, case {case!r}"
            check_same(self._observed[case], self._recorded(case), name)

    def _recorded(self, case: str) -> Any:
        name = self._path.name
        broker = self._record.get("broker")
        assert broker in {None, ApacheKafka.name}, (
            f"{name} is a record of {broker}, not of {ApacheKafka.name}: run `make record`"
        )
        cases = self._record.get("cases", {})
        assert case in cases, f"{name} has no case {case!r}: run `make record`"
        return cases[case]

    def save(self, *, is_whole: bool) -> None:
        """Write the record; ``is_whole`` removes the cases that no test observes."""
        if self._mode != "1" or not self._observed:
            return
        is_new = self._record.get("broker") != ApacheKafka.name
        kept = {} if is_new or (is_whole and not self._failed) else self._record["cases"]
        cases = {case: shortened(each) for case, each in (kept | self._observed).items()}
        record = {"broker": ApacheKafka.name, "date": self._record.get("date"), "cases": cases}
        for archive in self._archives.glob("*.tar.xz"):
            if archive.name.removesuffix(".tar.xz") not in cases:
                archive.unlink()
        # The date of the last change: what was recorded again without one is the same file.
        if not self._path.exists() or self._path.read_text(encoding="utf-8") != text_of(record):
            record["date"] = dt.datetime.now(dt.UTC).date().isoformat()
            self._path.write_text(text_of(record), encoding="utf-8")


def check_same(live: Any, recorded: Any, name: str) -> None:
    """Raise AssertionError with the first differences between an observation and its record."""
    if live == recorded:
        return
    found = [f"{name}: Apache Kafka differs from its record (then `make record`)"]
    if isinstance(live, dict) and isinstance(recorded, dict):
        labels = [
            label for label in sorted({*live, *recorded}) if live.get(label) != recorded.get(label)
        ]
        found += [
            f"{label}: live {live.get(label)!r}, recorded {recorded.get(label)!r}"
            for label in labels[:SHOWN_MOST]
        ]
        found.append(f"{len(labels)} differences")
    else:
        found.append(f"live {live!r}, recorded {recorded!r}")
    raise AssertionError("\n".join(found))


def in_numbers(label: str) -> list[str | int]:
    """Return a key for sorting that has v2 before v10."""
    parts = re.split(r"(\d+)", label)
    return [int(each) if at % 2 else each for at, each in enumerate(parts)]


def shortened(case: Any) -> Any:
    """Return a case in which each long result is written once, at the first of its labels."""
    if not isinstance(case, dict):
        return case
    first: dict[str, str] = {}
    found = {}
    for label in sorted(case, key=in_numbers):
        text = json.dumps(case[label], sort_keys=True)
        known = first.setdefault(text, label)
        found[label] = case[label] if known == label or len(text) <= SHORT else {SAME_AS: known}
    return found


def expanded(case: Any) -> Any:
    """Return a case as it was before ``shortened``."""
    if not isinstance(case, dict):
        return case
    return {
        label: case[result[SAME_AS]]
        if isinstance(result, dict) and result.keys() == {SAME_AS}
        else result
        for label, result in case.items()
    }


def text_of(value: Any, indent: str = "") -> str:
    """Return JSON with sorted keys; what fits into a line is one line, for diffs to be read."""
    line = json.dumps(value, ensure_ascii=False, sort_keys=True)
    inner = indent + " "
    if indent and (len(indent) + len(line) <= LINE_LENGTH or not isinstance(value, dict | list)):
        return line
    if isinstance(value, dict):
        keys = sorted(value, key=in_numbers) if indent else list(value)
        items = [
            f"{json.dumps(key, ensure_ascii=False)}: {text_of(value[key], inner)}" for key in keys
        ]
        opening, closing = "{}"
    else:
        items = [text_of(each, inner) for each in value]
        opening, closing = "[]"
    body = ",\n".join(f"{inner}{item}" for item in items)
    return f"{opening}\n{body}\n{indent}{closing}" + ("" if indent else "\n")
