"""Checks of the Python types of a pipeline's arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from barnabas.spark_connector.pipelines.pipeline import Pipeline
from barnabas.spark_connector.pipelines.sink import Sink
from barnabas.spark_connector.pipelines.source import Source
from barnabas.spark_connector.refusals import WrongUse


class _Shape(NamedTuple):
    fits: Callable[[Any], bool]
    form: str
    """Accepted values, as the error message has them."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _is_topics(value: object) -> bool:
    is_many = isinstance(value, list | tuple | set | frozenset)
    return _is_text(value) or (is_many and all(map(_is_text, value)))  # type: ignore[call-overload]


def _is_options(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value))


_TEXT: Final = _Shape(_is_text, "a string")
_SERVERS: Final = _Shape(_or_none(_is_text), "a string, as in 'localhost:9092'")
_OPTIONS: Final = _Shape(_is_options, "a dict of options by name, as in {'name': 'value'}")
_PIPELINE: Final = {
    "source": _Shape(
        lambda value: isinstance(value, Source) or callable(value),
        "a Source(...), or a function from the SparkSession to a DataFrame",
    ),
    "sink": _Shape(lambda value: isinstance(value, Sink), "a Sink(...)"),
    "transform": _Shape(callable, "a function from DataFrame to DataFrame"),
}
_SOURCE: Final = {
    "topic": _Shape(_or_none(_is_topics), "a topic's name, or a list of them"),
    "pattern": _Shape(_or_none(_is_text), "a string with a regular expression"),
    "servers": _SERVERS,
    "options": _OPTIONS,
}
_SINK: Final = {
    "sink_id": _TEXT,
    "topic": _Shape(_or_none(_is_text), "a topic's name"),
    "servers": _SERVERS,
    "kind": _TEXT,
    "output_mode": _TEXT,
    "trigger": _Shape(_is_options, "a dict, as in {'processingTime': '5 seconds'}"),
    "options": _OPTIONS,
}


def check_shapes(pipelines: Mapping[str, Pipeline]) -> None:
    """Refuse arguments of wrong types; the message has the pipeline's name in its file."""
    for name, pipeline in pipelines.items():
        _check(name, "", pipeline, _PIPELINE)
        if isinstance(pipeline.source, Source):
            _check(name, "source's ", pipeline.source, _SOURCE)
        _check(name, "sink's ", pipeline.sink, _SINK)


def _check(name: str, owner: str, of: object, shapes: Mapping[str, _Shape]) -> None:
    for argument, shape in shapes.items():
        value = getattr(of, argument)
        if not shape.fits(value):
            raise WrongUse(
                f"pipeline {name}: the {owner}{argument}= must be {shape.form}, but is {value!r}"
            )
