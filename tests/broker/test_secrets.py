"""A password leaves the process nowhere: by no client, page, command, log line or error."""

import json
import logging

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import properties_text
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.testing import Broker
from tests.broker.data_plane import Wire
from tests.http_client import urlopen
from tests.real.cli.command import barnabas, error_of
from tests.worlds import world

__all__ = ["world"]

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRET = "keep-this-to-yourself"
JAAS = f'{MODULE} required user_alice="{SECRET}";'
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": JAAS,
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
}


def test_secret_setting_is_listed_without_value():
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
        with urlopen(f"http://{host}:{port}/config", timeout=20) as answer:
            text = answer.read().decode()
    assert SECRET not in text
    assert {e["key"]: e["value"] for e in json.loads(text)["config"]}["sasl.jaas.config"] == (
        "[hidden]"
    )
    assert SECRET not in caplog.text


@pytest.mark.parametrize("form", [[], ["--format", "json"]])
def test_the_command_that_shows_settings(tmp_path, form):
    (tmp_path / "server.properties").write_text(properties_text(SETTINGS))
    done = barnabas("config", tmp_path / "server.properties", *form, cwd=tmp_path)
    assert done.returncode == 0
    assert SECRET not in done.stdout + done.stderr
    assert "[hidden]" in done.stdout


@pytest.mark.parametrize(
    ("command", "key", "value"),
    [
        ("serve", "barnabas.http.bearer.token", SECRET),
        ("config", "barnabas.scram.credentials", SECRET),
        ("config", "listener.name.sasl_plaintext.plain.sasl.jaas.config", f"${{env:A}}{SECRET}"),
        ("serve", "ssl.keystore.password", f"${{env:A}}{SECRET}"),
    ],
)
def test_no_secret_is_an_argument(tmp_path, command, key, value):
    error = error_of(barnabas(command, f"-X{key} = {value}", cwd=tmp_path), 2)
    assert error == (
        f"barnabas: {key} is a secret, and every user of this machine can see arguments: set it in "
        "a file, in the environment, or by a reference such as ${file:/path:key}"
    )


def test_where_a_secret_stands_may_be_an_argument(tmp_path):
    providers = "config.providers.env.class=org.apache.kafka.common.config.provider"
    done = barnabas(
        *("config", "-Xconfig.providers=env", f"-X{providers}.EnvVarConfigProvider"),
        *("-Xbarnabas.http.bearer.token=${env:TOKEN}", "-Xssl.keystore.password="),
        cwd=tmp_path,
        env={"TOKEN": SECRET},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "[hidden]" in done.stdout
    assert SECRET not in done.stdout


def test_objects_and_errors():
    config = load_config(overrides=[f"{k}={v}" for k, v in SETTINGS.items()]).config
    assert SECRET not in repr(config)
    assert SECRET not in repr(config.describe())
