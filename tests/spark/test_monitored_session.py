"""The monitor at a session, with PySpark's events; no Spark is started."""

from __future__ import annotations

import json
import threading
import urllib.request
import uuid

import pytest
from pyspark.sql.streaming import listener as pyspark_listener

from barnabas.spark_connector.errors import WrongOption
from barnabas.spark_connector.monitoring.listener import EventListener
from barnabas.spark_connector.monitoring.metrics_server import MetricsServer
from barnabas.spark_connector.monitoring.monitoring import monitor
from barnabas.spark_connector.monitoring.query_events import Ended, Started
from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.running.runner import Plan, _monitored
from barnabas.spark_connector.running.screen import TEXT, Screen


class Session:
    """Takes listeners as a Spark session does."""

    def __init__(self):
        self.streams = self
        self.listeners = []
        self.has_ended = False

    def addListener(self, listener):  # noqa: N802 - Spark's name
        self.listeners.append(listener)

    def removeListener(self, listener):  # noqa: N802 - Spark's name
        if self.has_ended:
            raise ConnectionRefusedError("the JVM has ended")
        self.listeners.remove(listener)


def test_one_line_follows_a_session_until_it_is_closed(caplog):
    session = Session()
    with monitor(session, port=0) as found:
        assert len(session.listeners) == 1
        with urllib.request.urlopen(found.url, timeout=60) as response:
            assert response.read() == b""
        _, port = found._server.address
        with pytest.raises(WrongOption, match=rf"cannot be served at .*:{port} "):
            monitor(session, port=port)
    assert session.listeners == []
    with monitor(session, port=None) as found:
        assert found.url is None
        session.has_ended = True
    assert "barnabas-monitor" not in {each.name for each in threading.enumerate()}
    assert caplog.messages == []
    with pytest.raises(WrongUse, match=r"monitor\(\) received str, not a SparkSession"):
        monitor("spark")
    with pytest.raises(WrongOption, match=r"kafka\.acks is not one of"):
        monitor(session, options={"kafka.acks": "1"})
    assert len(session.listeners) == 1


def test_events_of_pyspark_are_passed_on():
    """Call the public methods, as Spark Connect does, and classic PySpark without Java's names."""
    query_id, run_id = (str(uuid.UUID(int=number)) for number in (1, 2))
    same = {"id": query_id, "runId": run_id, "name": "money", "timestamp": "t"}
    sink = {"description": "x.PythonTable@1", "numOutputRows": 3, "metrics": {}}
    report = {"batchId": 7, "batchDuration": 5, "durationMs": {"addBatch": 4}}
    progress = same | report | {"sink": sink, "sources": [], "stateOperators": []}
    found = []
    listener = EventListener(found.append)
    listener.onQueryStarted(pyspark_listener.QueryStartedEvent.fromJson(same))
    listener.onQueryProgress(pyspark_listener.QueryProgressEvent.fromJson({"progress": progress}))
    ended = same | {"exception": None, "errorClassOnException": None}
    listener.onQueryTerminated(pyspark_listener.QueryTerminatedEvent.fromJson(ended))
    started, progressed, terminated = found
    assert started == Started(query_id, run_id, "money")
    assert json.loads(progressed.report) == progress
    assert terminated == Ended(query_id, run_id)


def test_the_command_serves_metrics_while_its_queries_run(capsys):
    with Screen(TEXT) as screen:
        with _monitored(Plan([], metrics_at=("127.0.0.1", 0)), Session(), screen):
            line = capsys.readouterr().out
            url = line.removeprefix("metrics are at ").strip()
            with urllib.request.urlopen(url, timeout=60) as response:
                assert response.status == 200
        with MetricsServer("127.0.0.1", 0, str) as taken:
            plan = Plan([], metrics_at=taken.address)
            refusal = pytest.raises(WrongUse, match=r"^--metrics-port: The metrics cannot")
            with refusal, _monitored(plan, Session(), screen):
                pytest.fail("the port is in use")
        with _monitored(Plan([]), Session(), screen):
            assert capsys.readouterr().out == ""
    assert "barnabas-monitor" not in {each.name for each in threading.enumerate()}
