"""Every argument of the wrong kind has its sentence, with the pipeline's name and what is taken."""

import pytest

from barnabas.spark_connector import Pipeline, Sink, Source
from barnabas.spark_connector.pipelines.shapes import check_shapes
from barnabas.spark_connector.refusals import WrongUse

SOURCE, SINK = Source(topic="in"), Sink(sink_id="a", topic="out")


def sink(**arguments):
    return {"sink": Sink(**{"sink_id": "a", "topic": "out"} | arguments)}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"source": "in"}, r"the source= must be a Source\(...\), or a function .* is 'in'"),
        ({"sink": "out"}, r"the sink= must be a Sink\(...\), but is 'out'"),
        ({"transform": None}, "the transform= must be a function from DataFrame .* is None"),
        ({"source": Source(topic=5)}, "source's topic= must be a topic's name, or a list .* is 5"),
        ({"source": Source(topic=["in", 5])}, "source's topic= must be a topic's name, or a list"),
        ({"source": Source(pattern=5)}, "source's pattern= must be a string with a regular"),
        ({"source": Source(topic="in", servers=5)}, "servers= must be a string, as in 'localhost"),
        ({"source": Source(topic="in", options="a")}, "source's options= must be a dict"),
        (sink(sink_id=5), "the sink's sink_id= must be a string, but is 5"),
        (sink(topic=5), "the sink's topic= must be a topic's name, but is 5"),
        (sink(servers=["a:1"]), r"the sink's servers= must be a string, .* is \['a:1'\]"),
        (sink(kind=None), "the sink's kind= must be a string"),
        (sink(output_mode=None), "the sink's output_mode= must be a string"),
        (
            sink(trigger="1 second"),
            "trigger= must be a dict, as in {'processingTime': '5 seconds'}",
        ),
        (sink(trigger=None), "the sink's trigger= must be a dict"),
        (sink(options=["a"]), "the sink's options= must be a dict of options by name"),
        (sink(options={5: 1}), "the sink's options= must be a dict of options by name"),
    ],
)
def test_an_argument_of_the_wrong_kind(arguments, says):
    pipeline = Pipeline(**{"source": SOURCE, "sink": SINK} | arguments)
    with pytest.raises(WrongUse, match=f"^pipeline mine: .*{says}"):
        check_shapes({"mine": pipeline})


def test_arguments_that_are_right():
    others = [
        Source(topic=("a", "b")),
        Source(pattern="a.*", servers="a:1", options={"failOnDataLoss": False}),
        lambda spark: spark,
    ]
    sinks = [SINK, Sink(sink_id="a", trigger={"availableNow": True}, options={"newQuery": True})]
    for source in others:
        for each in sinks:
            check_shapes({"a": Pipeline(source=source, sink=each, transform=str)})
