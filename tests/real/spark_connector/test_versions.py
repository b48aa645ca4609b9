import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from barnabas import spark_connector
from barnabas.testing import Broker

ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_the_extra_admits_every_tested_version():
    (requirement,) = (each for each in map(Requirement, EXTRAS["spark"]) if each.name == "pyspark")
    for version in spark_connector.TESTED_SPARK_VERSIONS:
        assert requirement.specifier.contains(version)


def test_the_interop_tests_use_a_tested_version():
    (pyspark,) = (each for each in map(Requirement, EXTRAS["interop"]) if each.name == "pyspark")
    assert str(pyspark.specifier).removeprefix("==") in spark_connector.TESTED_SPARK_VERSIONS


def test_the_command_says_what_is_missing_where_there_is_no_spark(tmp_path):
    """A wheel without its extra: all modules import, and one line names the package to install."""
    hidden = "import sys\nfor name in ('pyspark', 'pyarrow', 'numpy', 'pandas'):\n"
    program = hidden + "    sys.modules[name] = None\n"
    program += "import importlib.metadata as metadata\nfind = metadata.version\n"
    program += "def version(name):\n    if name == 'pyspark':\n"
    program += "        raise metadata.PackageNotFoundError\n    return find(name)\n"
    program += "metadata.version = version\n"
    program += (
        "from barnabas.spark_connector.running.command import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    pipeline = tmp_path / "pipeline_file.py"
    pipeline.write_text(
        "from barnabas.spark_connector import Pipeline, Sink, Source\n"
        "a = Pipeline(source=Source(topic='in'), sink=Sink(sink_id='a', topic='out'))\n"
    )
    with Broker() as broker:
        broker.create_topic("in")
        broker.create_topic("out")
        command = [sys.executable, "-c", program, "run", str(pipeline)]
        answer = subprocess.run(
            [*command, "--servers", broker.bootstrap_servers],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert answer.returncode == 1
    assert answer.stderr.startswith("barnabas.spark: PySpark is not installed: `pip install")
    assert len(answer.stderr.splitlines()) == 1
