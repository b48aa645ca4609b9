"""Topics and judges that the files of pipelines name."""

from __future__ import annotations

import pytest

from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving.own_judge import declared
from tests.checkout import ROOT

ONE = """
from barnabas.spark import Pipeline, Sink, Source
pipeline = Pipeline(source=Source(topic={source}), sink=Sink(sink_id="copy", topic="copies"))
"""


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "pipeline.py"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("ledger", "payments", "movements"),
        ("sessions", "clicks", "sessions"),
        ("enrichment", "orders", "orders-by-country"),
    ],
)
def test_example_names_its_topics_and_its_judge(name, source, target):
    found = declared(str(ROOT / "examples" / f"spark_{name}.py"))
    assert found == (source, target, str(ROOT / "examples" / "proving" / f"{name}_judge.py"))


def test_pipeline_without_a_judge_has_its_topics(file):
    assert declared(file(ONE.format(source="'orders'"))) == ("orders", "copies", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ONE.format(source="['a', 'b']"), "names no single topic: add --input and --output"),
        (ONE.format(source="'a'") + "other = pipeline", "has 2 pipelines: add --input, --output"),
        ("x = 1", "has 0 pipelines"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
    ],
)
def test_file_without_one_pipeline_between_two_topics_is_refused(file, text, message):
    with pytest.raises(CommandError, match=message):
        declared(file(text))
