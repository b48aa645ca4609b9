"""A password leaves the process nowhere: by no client, page, command, log line or error."""

import json
import logging
import os
import subprocess
import sys
import urllib.request

import pytest

from barnabas.broker.config.loader import load_config
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.testing import Broker
from tests.broker.data_plane import Wire

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRET = "keep-this-to-yourself"
JAAS = f'{MODULE} required user_alice="{SECRET}";'
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": JAAS,
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
}


def test_clients_are_told_that_there_is_one_and_no_more():
    with Broker(config=SETTINGS) as broker, Wire(broker.address) as wire:
        request = DescribeConfigsRequest([DescribeConfigsResource(4, "1", None)], True, True)
        (result,) = wire.ask(DESCRIBE_CONFIGS, request, 4).results
    assert SECRET not in repr([(each.name, each.value) for each in result.configs])
    found = {each.name: each for each in result.configs}["sasl.jaas.config"]
    assert (found.value, found.is_sensitive) == (None, True)
    assert [each.value for each in found.synonyms] == [None]


def test_pages_and_logs(caplog):
    caplog.set_level(logging.DEBUG)
    with Broker(config=SETTINGS | {"barnabas.http.listener": "127.0.0.1:0"}) as broker:
        host, port = broker.call(lambda: broker.server.http.address)
        with urllib.request.urlopen(f"http://{host}:{port}/config", timeout=20) as answer:
            text = answer.read().decode()
    assert SECRET not in text
    assert {e["key"]: e["value"] for e in json.loads(text)["config"]}["sasl.jaas.config"] == (
        "[hidden]"
    )
    assert SECRET not in caplog.text


@pytest.mark.parametrize("form", [[], ["--format", "json"]])
def test_the_command_that_shows_settings(form):
    overrides = [word for key, value in SETTINGS.items() for word in ("-X", f"{key}={value}")]
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "config", *overrides, *form],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert SECRET not in done.stdout + done.stderr
    assert "[hidden]" in done.stdout


def test_objects_and_errors():
    config = load_config(overrides=[f"{k}={v}" for k, v in SETTINGS.items()]).config
    assert SECRET not in repr(config)
    assert SECRET not in repr(config.describe())
