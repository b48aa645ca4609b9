"""Moments of the Spark command that real runs seldom hit: brought about with PySpark and Py4J."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace

import pytest
from py4j.java_gateway import JavaObject
from pyspark import SparkConf, java_gateway

from barnabas.spark_connector.session.spark_log import SparkLog
from barnabas.spark_connector.session.spark_process import NotStarted, _launched
from barnabas.spark_connector.session.stopping import Stop, Stopped
from tests.waiting import WAIT_S


@pytest.fixture
def stop():
    """Yield a Stop that receives signals until the end of the test."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    stop = Stop()
    stop.on_signals()
    yield stop
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("waits", [False, True], ids=["first", "second"])
def test_signal_during_the_release_of_a_py4j_object_is_not_lost(stop, waits):
    """Python prints an exception that is raised there, and continues."""
    stop.waits = stop.is_asked = waits
    with pytest.raises(Stopped):
        signalled_when_it_loses_an_object()


def signalled_when_it_loses_an_object():
    class Client:
        address = port = "a"
        gateway_property = SimpleNamespace(auto_field=False, enable_memory_management=True)

        def garbage_collect_object(self, _object_id):
            signal.raise_signal(signal.SIGTERM)

    JavaObject("o1", Client())
    time.sleep(WAIT_S)


def test_java_may_die_between_saying_where_it_is_and_being_asked(monkeypatch):
    def launch(_configuration, popen_kwargs):
        java = java_gateway.Popen(["sh", "-c", "echo Error: no room; kill -9 $$"], **popen_kwargs)
        java.wait()
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(java_gateway, "launch_gateway", launch)
    says = "^Spark's Java process was killed by SIGKILL when it started: Error: no room$"
    with SparkLog(verbose=False) as log, pytest.raises(NotStarted, match=says):
        _launched(SparkConf(loadDefaults=False), log)
