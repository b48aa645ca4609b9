"""The lines of docs/spark-cluster.md for YARN and Kubernetes, as far as they go without these.

Spark's submission talks to something that takes what Kubernetes' API would, and what it wants to
have run is given to the entry point of docker/spark.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from barnabas.spark_connector.session.jars import spark_kafka_jars
from examples import spark_data
from tests.checkout import PYTHONPATH, ROOT
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.java import java_home
from tests.counterparts.spark import quick_start
from tests.products import for_the_night
from tests.spark.conftest import SETTINGS
from tests.spark.movements import check_movements, committed

PAYMENTS = 500
PATIENCE_S = 300
ENTRY_POINT = ROOT / "docker/spark/entrypoint"
PROGRAM = """
from barnabas.spark import Pipeline, Sink, Source, run
from examples.spark_ledger import movements

pipeline = Pipeline(
    source=Source(topic="payments"), transform=movements,
    sink=Sink(sink_id="ledger", topic="movements"),
)

if __name__ == "__main__":
    run(pipeline)
"""
pytestmark = pytest.mark.timeout(900)


class ApiServer:
    """Takes all objects, and has none."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        objects = self.objects

        class Handler(BaseHTTPRequestHandler):
            def take(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                found = json.loads(self.rfile.read(length) or b"{}")
                found.setdefault("metadata", {})["uid"] = "1"
                objects.append(found)
                self.send_response(201)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            do_POST = do_PATCH = take  # noqa: N815 - as http.server has it

            def log_message(self, *_arguments: object) -> None:
                """Keep the output of the test clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def of_kind(self, kind: str) -> dict[str, Any]:
        (found,) = [each for each in self.objects if each["kind"] == kind]
        return found

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host}:{port}"

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


def documented(beginning: str) -> list[str]:
    """Return the words of the line of the page that begins so."""
    lines = (ROOT / "docs/spark-cluster.md").read_text().replace("\\\n", "").splitlines()
    (line,) = [each for each in lines if each.startswith(beginning)]
    return shlex.split(line)


def run(words: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    binaries = [str(Path(sys.executable).parent), str(java_home() / "bin"), os.environ["PATH"]]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("SPARK_")},
        "PATH": os.pathsep.join(binaries),
        "PYTHONPATH": PYTHONPATH,
        "SPARK_LOCAL_IP": "127.0.0.1",
        **variables,
    }
    return subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[str]:
    with BarnabasProcess(tmp_path / "broker", **SETTINGS) as broker:
        spark_data.create_topics(broker.bootstrap_servers, ["payments", "movements"], 2)
        spark_data.send(broker.bootstrap_servers, spark_data.payments(PAYMENTS))
        yield broker.bootstrap_servers


@for_the_night(
    beside="tests/spark/test_clusters_elsewhere.py"
    "::test_executor_receives_the_options_of_its_variables"
)
def test_spark_submit_takes_the_options_for_yarn():
    ended = run(documented("spark-submit --master yarn"))
    assert ended.returncode == 1
    (reason,) = [line for line in ended.stderr.splitlines() if "Exception" in line]
    assert reason.endswith("HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment.")


@for_the_night(
    beside="tests/spark/test_clusters_elsewhere.py"
    "::test_executor_receives_the_options_of_its_variables"
)
def test_the_page_submits_a_pod_that_the_entry_point_understands(api, servers, tmp_path):
    words = documented("spark-submit --master k8s://")
    words[words.index("--master") + 1] = f"k8s://{api.address}"
    wait = ["--conf", "spark.kubernetes.submission.waitAppCompletion=false"]
    ended = run([words[0], *wait, *words[1:]])
    assert ended.returncode == 0, ended.stderr
    spec = api.of_kind("Pod")["spec"]
    assert spec["restartPolicy"] == "Never"
    (container,) = spec["containers"]
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    arguments = container["args"]
    program = arguments.index("local:///opt/pipelines/ledger.py")
    assert arguments[program + 1] == "--checkpoint"
    assert arguments[program + 2] in mounts
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["BARNABAS_SERVERS"] == "barnabas:9092"

    # The driver of that pod, on this machine instead.
    properties = arguments[arguments.index("--properties-file") + 1]
    assert properties == f"{variables['SPARK_CONF_DIR']}/spark.properties"
    settings = quick_start() | {
        "spark.master": "local[2]",
        "spark.jars": ",".join(map(str, spark_kafka_jars())),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    here = tmp_path / "spark.properties"
    here.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    (tmp_path / "ledger.py").write_text(PROGRAM)
    arguments[arguments.index("--properties-file") + 1] = str(here)
    arguments[program] = f"local://{tmp_path}/ledger.py"
    arguments[program + 2] = str(tmp_path / "checkpoints")
    ended = run(
        [str(ENTRY_POINT), *arguments, "--once"],
        BARNABAS_SERVERS=servers,
        SPARK_DRIVER_BIND_ADDRESS="127.0.0.1",
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    check_movements(committed(servers, "movements"), PAYMENTS)


def test_executor_receives_the_options_of_its_variables(tmp_path):
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dx.{number}=a b" for number in range(12)}
    ended = run(
        [str(ENTRY_POINT), "executor"],
        PATH=f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        SPARK_APPLICATION_ID="spark-1",
        SPARK_CONF_DIR="/opt/spark/conf",
        SPARK_DRIVER_URL="spark://CoarseGrainedScheduler@driver:7078",
        SPARK_EXECUTOR_CORES="2",
        SPARK_EXECUTOR_ID="3",
        SPARK_EXECUTOR_MEMORY="1024m",
        SPARK_EXECUTOR_POD_IP="10.0.0.1",
        SPARK_EXECUTOR_POD_NAME="ledger-exec-3",
        SPARK_RESOURCE_PROFILE_ID="0",
        **options,
    )
    assert ended.returncode == 0, ended.stderr
    words = ended.stdout.splitlines()
    assert words[:12] == list(options.values())
    assert words[12:15] == ["-Xms1024m", "-Xmx1024m", "-cp"]
    assert words[15].startswith("/opt/spark/conf:")
    assert words[15].endswith("/pyspark/jars/*")
    backend, *rest = words[16:]
    assert backend == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    assert dict(zip(rest[::2], rest[1::2], strict=True)) == {
        "--driver-url": "spark://CoarseGrainedScheduler@driver:7078",
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.1",
        "--resourceProfileId": "0",
        "--podName": "ledger-exec-3",
    }


def test_everything_else_is_a_command_of_its_own():
    ended = run([str(ENTRY_POINT), "printf", "%s", "a b"])
    assert (ended.returncode, ended.stdout) == (0, "a b")
