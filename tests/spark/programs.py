"""The examples that name the sink only, as programs: classic, with Spark Connect, declarative.

One process has a query for each place at which it is to be killed. All places are armed, and each
query pauses at the first that no other one has taken: so all pause, each at another place.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from barnabas.spark_connector.failpoints import VARIABLE
from tests.checkout import ROOT
from tests.counterparts import spark
from tests.counterparts.jars import spark_kafka_jars
from tests.counterparts.java import java_home
from tests.counterparts.spark import QUICK_START
from tests.spark.command import words_of
from tests.spark.job import TASKS, Job
from tests.spark.sessions import kill_session
from tests.waiting import wait_until

CLASSIC, CONNECT, DECLARATIVE = "classic", "connect", "declarative"
WAYS = (CLASSIC, CONNECT, DECLARATIVE)
PATIENCE_S = 1800
SLOTS = 32
"""Tasks that pause take one each."""
EXAMPLES = ROOT / "examples"
FLOWS = "flows"
PYSPARK = "pyspark[connect,pipelines]==4.2.0"
_RUN_ALL = """
import runpy, sys

# In one thread: classic PySpark finds no data source in a thread without an active session.
queries = [runpy.run_path(file)["query"] for file in sys.argv[1:]]
for query in queries:
    query.awaitTermination()
"""


@dataclass(frozen=True)
class Installed:
    """A Python that has PySpark and this project, and the settings of its Spark."""

    python: Path
    scripts: Path
    """Directory of PySpark's scripts."""
    settings: Mapping[str, str]


def built_wheel(directory: Path) -> Path:
    """Build the wheel of this checkout."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run([*build, "--outdir", directory, ROOT], check=True, cwd=directory)
    (wheel,) = directory.glob("*.whl")
    return wheel


def installed_by_pip(directory: Path) -> Installed:
    """Install the wheel with its extra, and PySpark, by pip, into an environment of its own."""
    wheel = built_wheel(directory)
    venv.create(directory / "venv", with_pip=True)
    scripts = directory / "venv" / "bin"
    install = [scripts / "python", "-m", "pip", "install", "--quiet"]
    packages = [f"barnabas[spark] @ {wheel.as_uri()}", PYSPARK]
    subprocess.run([*install, *packages], check=True, cwd=directory)
    java_options = {"spark.driver.extraJavaOptions": " ".join(QUICK_START)}
    return Installed(scripts / "python", scripts, java_options | _quick_daemon(directory))


def unpacked_wheel(directory: Path) -> Installed:
    """Unpack the wheel into a bare environment that has the other packages of the tests' Python.

    The name barnabas comes from the wheel: the path file of this checkout is not read there.
    """
    wheel = built_wheel(directory)
    venv.create(directory / "venv", with_pip=False)
    (site,) = (directory / "venv" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    return Installed(
        directory / "venv" / "bin" / "python",
        Path(sys.executable).parent,
        {**spark.quick_start(), **_quick_daemon(directory)},
    )


def _quick_daemon(directory: Path) -> dict[str, str]:
    """Add the daemon of the tests, whose Python workers have their imports already."""
    (site,) = (directory / "venv" / "lib").glob("python*/site-packages")
    shutil.copy(Path(spark.__file__).with_name("spark_daemon.py"), site / "quick_daemon.py")
    return {"spark.python.daemon.module": "quick_daemon"}


class Program:
    """The example of one way to run Spark, once for each job; all are in one process."""

    def __init__(
        self, way: str, directory: Path, jobs: Sequence[Job], installed: Installed
    ) -> None:
        self._way = way
        self._directory = directory
        self._jobs = jobs
        self._installed = installed
        self._failpoints = directory / "failpoints"
        self._temporary_files = directory / "temporary"
        for each in (self._failpoints, self._temporary_files):
            each.mkdir(parents=True)
        self._starts = 0

    # -- files -------------------------------------------------------------------------------------

    def write(self, **options: str) -> None:
        """Write the files of the program; ``options`` are more options of each sink."""
        if self._way == DECLARATIVE:
            spec = _replaced(
                (EXAMPLES / "spark-pipeline.yml").read_text(),
                {
                    "file:///tmp/payments-flow": self._storage.as_uri(),
                    "include: spark_sink_pipeline.py": f"include: {FLOWS}/**",
                },
            )
            (self._directory / "spark-pipeline.yml").write_text(spec)
        for job in self._jobs:
            self._file(job).parent.mkdir(exist_ok=True)
            self._file(job).write_text(self._text(job, options))

    def _text(self, job: Job, options: Mapping[str, str]) -> str:
        """Return the example with the names of a job and a transform that depends on chance."""
        common = {
            "localhost:9092": job.servers,
            '"payments"': f'"{job.input}"',
            '.selectExpr("key", "value")': (
                f'.selectExpr("*", "rand() as chance").repartition({TASKS}, "chance")'
                '.selectExpr("key", "cast(value as string) as number")'
                '.selectExpr("key", "concat(number, \':\', number * bigint(number)) as value")'
            ),
            "    .load()": f'    .option("maxOffsetsPerTrigger", "{job.per_trigger}").load()',
        }
        if self._way == DECLARATIVE:
            more = "".join(f', "{name}": "{value}"' for name, value in options.items())
            return _replaced(
                (EXAMPLES / "spark_sink_pipeline.py").read_text(),
                common
                | {
                    '"sinkId": "payments-flow"': f'"sinkId": "{job.name}"',
                    '"topic": "payments-flow"': f'"topic": "{job.output}"{more}',
                    'create_sink(\n    "payments_flow"': f'create_sink(\n    "{_identifier(job)}"',
                    'target="payments_flow"': f'target="{_identifier(job)}"',
                    "def payments": f"def {_identifier(job)}_rows",
                },
            )
        more = "".join(f'.option("{name}", "{value}")' for name, value in options.items())
        return _replaced(
            (EXAMPLES / "spark_sink.py").read_text(),
            common
            | {
                '"sinkId", "payments-copy"': f'"sinkId", "{job.name}"',
                '"topic", "payments-copy")': f'"topic", "{job.output}"){more}',
                "checkpoints/payments-copy": job.checkpoint,
                "query.awaitTermination()": "",
            },
        )

    def _file(self, job: Job) -> Path:
        folder = self._directory / FLOWS if self._way == DECLARATIVE else self._directory
        return folder / f"{_identifier(job)}.py"

    @property
    def _storage(self) -> Path:
        return self._directory / "storage"

    def judged(self, job: Job, *, full_refreshes: int = 0) -> Job:
        """Return the job with the checkpoint that the program has."""
        if self._way != DECLARATIVE:
            return job
        name = _identifier(job)
        path = self._storage / "_checkpoints" / name / f"{name}_rows" / str(full_refreshes)
        return replace(job, checkpoint=str(path))

    # -- processes ---------------------------------------------------------------------------------

    def run(self, *arguments: str) -> str:
        """Run it to its end, which must be a good one; return what it prints."""
        code, said = self.end(self.start(*arguments))
        assert code == 0, f"exit code {code}: {said[-6000:]}"
        return said

    def run_until(self, places: Sequence[str]) -> None:
        """Run it until each place has a query that pauses there, then kill -9 all processes."""
        for place in places:
            (self._failpoints / place).write_text("pause")
        process = self.start()

        def have_paused() -> bool:
            assert process.poll() is None, f"{process.returncode}: {self._said()[-6000:]}"
            return {each.stem for each in self._failpoints.glob("*.*")} == set(places)

        try:
            wait_until(
                have_paused,
                lambda: (sorted(map(str, self._failpoints.iterdir())), self._said()[-3000:]),
                seconds=PATIENCE_S,
            )
        finally:
            kill_session(process)
        for each in self._failpoints.iterdir():
            each.unlink()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start it in a session of its own."""
        self._starts += 1
        with self._log.open("wb") as output:
            return subprocess.Popen(
                [*self._command(), *arguments],
                cwd=self._directory,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def end(self, process: subprocess.Popen[bytes]) -> tuple[int, str]:
        """Wait for its end; return the exit code and what it has printed."""
        deadline = time.monotonic() + PATIENCE_S
        try:
            process.wait(deadline - time.monotonic())
        finally:
            kill_session(process)
        return process.returncode, self._said()

    @property
    def _log(self) -> Path:
        return self._directory / f"run-{self._starts}.log"

    def _said(self) -> str:
        return self._log.read_text(errors="replace")

    def _command(self) -> list[str]:
        if self._way == DECLARATIVE:
            program = self._installed.scripts / "spark-pipelines"
            return [str(program), "--remote", f"local[{SLOTS}]", *self._words(), "run"]
        program = self._directory / "run_all.txt"
        program.write_text(_RUN_ALL)
        files = [str(self._file(job)) for job in self._jobs]
        return [str(self._installed.python), str(program), *files]

    def _words(self) -> list[str]:
        settings = {
            **self._installed.settings,
            "spark.driver.extraClassPath": ":".join(map(str, spark_kafka_jars())),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": str(self._temporary_files),
            "spark.sql.warehouse.dir": str(self._directory / "warehouse"),
        }
        return words_of(settings)

    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment = {
            **kept,
            **spark.quick_launcher(),
            VARIABLE: str(self._failpoints),
            "JAVA_HOME": str(java_home()),
            "PYSPARK_PYTHON": str(self._installed.python),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(self._temporary_files),
            # Otherwise Spark Connect listens on a fixed port.
            "SPARK_TESTING": "1",
        }
        if self._way == DECLARATIVE:
            return environment
        words = [each.replace(" ", "\\ ") for each in self._words()]
        if self._way == CLASSIC:
            words += ["--master", f"local[{SLOTS}]"]
        else:
            environment["SPARK_REMOTE"] = f"local[{SLOTS}]"
        return {**environment, "PYSPARK_SUBMIT_ARGS": " ".join([*words, "pyspark-shell"])}


def _identifier(job: Job) -> str:
    return re.sub(r"\W", "_", job.name)


def _replaced(text: str, names: Mapping[str, str]) -> str:
    """Replace each name, which must be in the text."""
    for before, after in names.items():
        assert before in text, f"the example has no {before}"
        text = text.replace(before, after)
    return text
