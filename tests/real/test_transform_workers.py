"""SIGTERM ends a worker of ``tests/interop/test_transform.py`` between two transactions."""

from __future__ import annotations

import os
import subprocess

import pytest

from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire, batch
from tests.checkout import PYTHONPATH
from tests.groups.scenario import BROKER_SETTINGS
from tests.interop.transform_worker import OUTPUT_PARTITIONS, WORKERS, command_line, transformed
from tests.waiting import wait_until

END_S = 60


@pytest.mark.parametrize("library", WORKERS)
def test_workers_leave_when_asked(library):
    with Broker(config=BROKER_SETTINGS) as broker:
        broker.create_topic("input", 1)
        broker.create_topic("output", OUTPUT_PARTITIONS)
        with Wire(broker.address) as wire:
            assert wire.produce(Named("input"), batch(b"1")).error_code == 0
        command = [
            word.replace("{servers}", broker.bootstrap_servers).replace("{instance}", "1")
            for word in command_line(library, "application")
        ]
        with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": PYTHONPATH}) as worker:
            try:
                wait_until(lambda: len(broker.records("output").result))
                worker.terminate()
                assert worker.wait(END_S) == 0
            finally:
                worker.kill()
        assert [each.value for each in broker.records("output").result] == [transformed(b"1")]
