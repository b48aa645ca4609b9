"""The image in the place of Apache's and Confluent's, started as Testcontainers' modules do it.

What each module does is replayed; testcontainers-python itself also runs, on a socket that it takes
for Docker's.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.clients import brokers, consume_in_group, produce
from tests.image.engine_api import EngineApi
from tests.image.testcontainers_modules import MODULES

PROGRAM = Path(__file__).with_name("with_testcontainers.py")
VALUES = [b"%03d" % number for number in range(20)]


@pytest.mark.parametrize("module", MODULES, ids=[module.name for module in MODULES])
def test_a_module(container, module):
    kafka = container(command=module.command, environment=module.environment)
    address = f"localhost:{kafka.publish(module.port)}"
    host, _, port = address.partition(":")
    script = module.script
    for name, value in (("host", host), ("port", port), ("name", kafka.host_name)):
        script = script.replace(f"{{{name}}}", value)
    if module.written_inside:
        written = kafka.execute("sh", "-c", f"echo '{script}' > {module.script_path}")
        assert written.returncode == 0, written.stderr
    else:
        kafka.put(module.script_path, script, module.mode)
    kafka.wait_for_log(module.ready)
    # On standard output, where some of the modules look.
    assert len(re.findall(module.ready, kafka.output)) == 1
    told = "127.0.0.1" if "127.0.0.1:{port}" in module.script else "localhost"
    assert brokers(address) == [f"{told}:{port}"]
    produce(address, "orders", VALUES)
    assert consume_in_group(address, "orders", len(VALUES)) == VALUES
    # Modules without a pattern check inside whether a process listens.
    assert kafka.execute("bash", "-c", f"</dev/tcp/localhost/{module.port}").returncode == 0
    kafka.kill()
    assert "Traceback" not in kafka.log
    assert not re.search(r"barnabas: |[Pp]ermission denied", kafka.log), kafka.log


@pytest.mark.parametrize("mode", ["zookeeper", "kraft"])
def test_testcontainers_python(image, tmp_path, mode):
    with EngineApi(image, tmp_path) as engine:
        environment = {
            **os.environ,
            "DOCKER_HOST": engine.url,
            # Its cleaner is an image of its own.
            "TESTCONTAINERS_RYUK_DISABLED": "true",
        }
        user = subprocess.Popen(
            [sys.executable, str(PROGRAM), mode],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            address = user.stdout.readline().strip()
            assert address, engine.refused
            produce(address, "orders", VALUES)
            assert consume_in_group(address, "orders", len(VALUES)) == VALUES
            user.communicate(timeout=60)
            assert user.returncode == 0
        finally:
            user.kill()
            user.communicate()
        assert engine.refused == []
        (kafka,) = engine.containers.values()
        assert not kafka.started
