"""Values in files, directories and the environment, and missing ones."""

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import parse_properties
from barnabas.broker.config.types import ConfigError

CLASS = "org.apache.kafka.common.config.provider."
PROVIDERS = f"""
config.providers=file, env,dir
config.providers.file.class={CLASS}FileConfigProvider
config.providers.env.class={CLASS}EnvVarConfigProvider
config.providers.dir.class={CLASS}DirectoryConfigProvider
"""


def load(text, environment=None):
    return load_config(parse_properties(text), environment or {}).config


@pytest.fixture
def secrets(tmp_path):
    (tmp_path / "a.properties").write_text("racks.one = r1\nuser=alice\n")
    (tmp_path / "rack").write_text("r2\n")
    return tmp_path


def test_values_are_looked_up(secrets):
    assert (
        load(PROVIDERS + f"broker.rack=${{file:{secrets}/a.properties:racks.one}}").broker_rack
        == "r1"
    )
    assert load(PROVIDERS + f"broker.rack=${{dir:{secrets}:rack}}").broker_rack == "r2"
    config = load(PROVIDERS + "broker.rack=${env:RACK}", {"RACK": "r3"})
    assert config.broker_rack == "r3"


def test_several_in_one_value_and_none_of_what_was_found(secrets):
    text = f"broker.rack=x-${{env:A}}-${{file:{secrets}/a.properties:user}}-y"
    assert load(PROVIDERS + text, {"A": "${env:B}", "B": "no"}).broker_rack == "x-${env:B}-alice-y"


def test_where_a_value_was_set_is_still_known(secrets):
    config = load(PROVIDERS + f"broker.rack=${{dir:{secrets}:rack}}")
    assert config.settings["broker.rack"][0].origin == "server.properties line 6"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("${vault:secret:key}", "config provider vault does not exist, only file, env, dir"),
        ("${env:NOT_THERE}", "environment variable NOT_THERE is not set"),
        ("${env:/path:HOME}", "takes no path"),
        ("${file:/no/such/file:key}", "/no/such/file: No such file or directory"),
        ("${file:@/a.properties:other}", "has no key other"),
        ("${file:relative:key}", "is not an absolute path"),
        ("${dir:@:../x}", "is no name of a file"),
        ("${dir:@:..}", "is no name of a file"),
        ("${dir:@:gone}", "No such file or directory"),
        ("${dir:/proc/self:mem}", "/proc/self/mem"),
    ],
)
def test_failed_lookup_stops_the_start(secrets, value, problem):
    with pytest.raises(ConfigError) as caught:
        load(PROVIDERS + f"broker.rack={value.replace('@', str(secrets))}")
    assert problem in str(caught.value)
    assert str(caught.value).startswith("broker.rack: ")
    assert "server.properties line 6" in str(caught.value)


def test_without_providers_a_reference_stops_the_start():
    with pytest.raises(
        ConfigError, match=r"config provider env does not exist: config.providers names none"
    ):
        load("broker.rack=${env:HOME}", {"HOME": "/root"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("config.providers=file", "config.providers.file.class: Value must be one of"),
        ("config.providers=x\nconfig.providers.x.class=com.example.Vault", "must be one of"),
        ("config.providers.env.class=x", "config.providers does not name it"),
        (PROVIDERS + "config.providers.env.param.allowed.paths=/x", "this provider has allowlist"),
        (PROVIDERS + "config.providers.env.param.allowlist.pattern=(", "unterminated"),
    ],
)
def test_providers_that_cannot_be(text, problem):
    with pytest.raises(ConfigError, match=problem):
        load(text)


def test_allowed_paths_limit_the_provider(secrets):
    (secrets / "in").mkdir()
    (secrets / "in" / "key").write_text("k")
    (secrets / "out").write_text("o")
    (secrets / "in" / "link").symlink_to(secrets / "out")
    allowed = PROVIDERS + f"config.providers.dir.param.allowed.paths={secrets}/in\n"
    assert load(allowed + f"broker.rack=${{dir:{secrets}/in:key}}").broker_rack == "k"
    for path in (f"{secrets}:out", f"{secrets}/in:link", f"{secrets}/in/..:out"):
        with pytest.raises(ConfigError, match=r"is not below allowed\.paths"):
            load(allowed + f"broker.rack=${{dir:{path}}}")
    pattern = PROVIDERS + "config.providers.env.param.allowlist.pattern=RACK.*\n"
    environment = {"RACK_1": "r", "HOME": "h"}
    assert load(pattern + "broker.rack=${env:RACK_1}", environment).broker_rack == "r"
    with pytest.raises(ConfigError, match="variable HOME is not set, or is not allowed"):
        load(pattern + "broker.rack=${env:HOME}", environment)


def test_a_file_without_end_is_not_read():
    with pytest.raises(ConfigError, match="longer than"):
        load(PROVIDERS + "broker.rack=${dir:/dev:zero}")
