"""The compose files, the settings in them, and the files they mount."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from barnabas.broker.cluster.peers.settings import listener_of_brokers, security_of_brokers
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import parse_properties
from tests.counterparts.npm import compose_schema
from tests.real.cli.command import environment

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
FILES = sorted(DOCKER.glob("compose*.yaml"))
SERVICE_KEYS = {
    "build", "cap_drop", "command", "depends_on", "entrypoint", "environment", "extends",
    "healthcheck", "hostname", "image", "ports", "read_only", "restart", "security_opt",
    "stop_grace_period", "tmpfs", "user", "volumes", "working_dir",
}  # fmt: skip
CONDITIONS = {"service_completed_successfully", "service_healthy", "service_started"}
SECRETS = "/etc/kafka/secrets"
VARIABLE = re.compile(r"\$\{[A-Z_]+:-([^}]*)\}")
DEFAULTS = parse_properties((DOCKER / "defaults.properties").read_text())

ALONE = [path for path in FILES if path.name != "compose.cluster.yaml"]
"""The files with one broker."""

by_name = pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
by_name_alone = pytest.mark.parametrize("path", ALONE, ids=[path.name for path in ALONE])


def with_defaults(value):
    """Replace ${NAME:-default} by its default, in strings at any depth."""
    match value:
        case str():
            return VARIABLE.sub(r"\1", value)
        case list():
            return [with_defaults(each) for each in value]
        case dict():
            return {key: with_defaults(each) for key, each in value.items()}
        case _:
            return value


def project(path):
    """Read a compose file, with the services that it extends."""
    read = with_defaults(yaml.safe_load(path.read_text()))
    for name, service in read["services"].items():
        if "extends" in service:
            base = project(path.parent / service["extends"]["file"])
            extended = base["services"][service.pop("extends")["service"]]
            environment = extended.get("environment", {}) | service.get("environment", {})
            volumes = extended.get("volumes", []) + service.get("volumes", [])
            merged = {"environment": environment, "volumes": volumes}
            read["services"][name] = extended | service | merged
    return read


def as_mapping(depends_on):
    """Both forms of depends_on as the longer one."""
    if isinstance(depends_on, dict):
        return depends_on
    return {name: {"condition": "service_started"} for name in depends_on}


def published(service):
    """Return the ports in the container that are published, to this machine only."""
    ports = [port.rpartition(":") for port in service.get("ports", [])]
    assert all(address.startswith("127.0.0.1:") for address, _, _ in ports)
    return [int(inside) for _, _, inside in ports]


def test_which_files_there_are():
    names = [path.name for path in FILES]
    kinds = ["cluster", "observability", "secure", "spark"]
    assert names == [*(f"compose.{kind}.yaml" for kind in kinds), "compose.yaml"]


@by_name
def test_it_is_what_compose_reads(path):
    schema = json.loads(compose_schema().read_text())
    # What other files import must not cost 2 s: jsonschema compiles grammars.
    from jsonschema import Draft7Validator

    found = Draft7Validator(schema).iter_errors(yaml.safe_load(path.read_text()))
    assert [f"{error.json_path}: {error.message}" for error in found] == []


@by_name
def test_every_service_is_complete(path):
    read = project(path)
    assert {key for key in read if not key.startswith("x-")} == {"name", "services", "volumes"}
    named_volumes = set()
    for service in read["services"].values():
        assert set(service) <= SERVICE_KEYS
        assert re.fullmatch(r"[a-z0-9./-]+:[a-z0-9.-]+", service["image"])
        if "build" in service:
            context = path.parent / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).is_file()
        for other, needed in as_mapping(service.get("depends_on", {})).items():
            assert other in read["services"]
            assert needed["condition"] in CONDITIONS
        for volume in service.get("volumes", []):
            source, target, *mode = volume.split(":")
            assert target.startswith("/")
            if source.startswith("."):
                assert (path.parent / source).is_dir()
                assert mode == ["ro"]
                for word in [*service.get("entrypoint", []), *service.get("command", [])]:
                    if word.startswith(f"{target}/"):
                        script = path.parent / source / word.removeprefix(f"{target}/")
                        assert os.access(script, os.X_OK)
            else:
                named_volumes.add(source)
    assert named_volumes == set(read["volumes"])


def prepared(path, tmp_path):
    """Do what has to be done before the broker starts; return its service, with the test's files.

    The directory of secrets is one of the test's.
    """
    services = project(path)["services"]
    broker = services["broker"]
    for name in as_mapping(broker.get("depends_on", {})):
        assert f"secrets:{SECRETS}" in services[name]["volumes"]
        assert f"secrets:{SECRETS}:ro" in broker["volumes"]
        words = [word.replace(SECRETS, str(tmp_path)) for word in services[name]["command"]]
        if words[0] == "barnabas":
            words[:1] = [sys.executable, "-m", "barnabas"]
        for _ in range(2):  # As at every start.
            subprocess.run(words, cwd=tmp_path, env=environment(), check=True)
    settings = broker["environment"]
    return broker | {
        "environment": {k: v.replace(SECRETS, str(tmp_path)) for k, v in settings.items()}
    }


def loaded(service):
    """Load the configuration as the broker does."""
    file = service["environment"].get("BARNABAS_PROPERTIES")
    properties = parse_properties(Path(file).read_text()) if file else []
    return load_config(properties, service["environment"], defaults=DEFAULTS)


@by_name_alone
def test_the_broker_understands_its_settings(path, tmp_path):
    service = prepared(path, tmp_path)
    found = loaded(service)
    assert (found.ignored, found.unknown) == ((), ())
    endpoints = {each.port: each for each in found.config.endpoints}
    # This machine's port and the name by which other containers know the broker.
    assert endpoints[9092].advertised == ("localhost", 9092)
    assert endpoints[19092].advertised == (service["hostname"], 19092)
    assert set(published(service)) == {9092, 9644}
    assert found.config.http_address == ("", 9644)
    assert found.config.data_directory == "/var/lib/kafka/data"
    assert "data:/var/lib/kafka/data" in service["volumes"]


def test_the_secure_broker_is_secure(tmp_path):
    config = loaded(prepared(DOCKER / "compose.secure.yaml", tmp_path)).config
    assert {each.security_protocol for each in config.endpoints} == {"SASL_SSL"}
    assert config.authorizer_class_name
    assert config.super_users == "User:admin"
    assert config.sasl_enabled_mechanisms == ("SCRAM-SHA-512",)
    assert (tmp_path / "barnabas" / "admin.properties").exists()


def test_prometheus_is_let_in(tmp_path):
    """The first service creates the token, the broker requires it, and Prometheus sends it."""
    path = DOCKER / "compose.observability.yaml"
    token = loaded(prepared(path, tmp_path)).config.http_bearer_token
    assert len(token) == 44
    (job,) = yaml.safe_load((DOCKER / "prometheus/prometheus.yml").read_text())["scrape_configs"]
    shown = job["authorization"]["credentials_file"]
    (mounted,) = [
        volume.split(":")[1]
        for volume in project(path)["services"]["prometheus"]["volumes"]
        if volume.startswith("secrets:")
    ]
    # Prometheus leaves white space at the ends away.
    assert Path(str(tmp_path) + shown.removeprefix(mounted)).read_text().strip() == token


@by_name_alone
def test_who_talks_to_the_broker_uses_its_inside_name(path):
    for name, service in project(path)["services"].items():
        if name == "broker":
            continue
        for value in service.get("environment", {}).values():
            for host, port in re.findall(r"\b(localhost|broker):(\d+)", str(value)):
                assert (host, int(port)) == ("broker", 19092)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_broker_of_the_cluster_understands_its_settings(number, tmp_path):
    """Each broker finds the others, and PostgreSQL, by their names in the file."""
    services = project(DOCKER / "compose.cluster.yaml")["services"]
    broker = services[f"broker-{number}"]
    (tmp_path / "metadata").write_text(
        "postgresql://barnabas:secret@database-1,database-2/barnabas\n"
    )
    (tmp_path / "http-token").write_text("let-me-in\n")
    (tmp_path / "objects").write_text("of-the-store\n")
    settings = broker["environment"].items()
    found = load_config(
        [], {k: v.replace(SECRETS, str(tmp_path)) for k, v in settings}, defaults=DEFAULTS
    )
    assert (found.ignored, found.unknown) == ((), ())
    config = found.config
    assert config.is_of_cluster
    assert config.storage_secret_key == "of-the-store"
    (_, _, port) = services["objects"]["command"]
    assert config.storage_endpoint == f"http://objects:{port}"
    assert config.http_bearer_token == "let-me-in"
    port = 9091 + number
    advertised = {each.name: (each.port, *each.advertised) for each in config.endpoints}
    assert broker["hostname"] == f"broker-{number}"
    assert advertised == {
        "OUTSIDE": (port, "localhost", port),
        "INSIDE": (19092, broker["hostname"], 19092),
    }
    assert listener_of_brokers(config).name == "INSIDE"
    assert security_of_brokers(config).protocol == "PLAINTEXT"
    assert config.data_directory == "/var/lib/kafka/data"
    assert f"cache-{number}:/var/lib/kafka/data" in broker["volumes"]
    assert set(published(broker)) == {port, 9644}


def test_no_secret_is_in_the_file_of_the_cluster():
    path = DOCKER / "compose.cluster.yaml"
    services = project(path)["services"]
    databases = {name for name in services if name.startswith("database")}
    for name, service in services.items():
        for key in service.get("environment", {}):
            assert "PASSWORD" not in key or key.endswith("_FILE")
        mounted = {each.split(":")[0] for each in service["volumes"]}
        assert ("database-secrets" in mounted) == (name in {*databases, "secrets"})
        assert ("objects-secrets" in mounted) == (name in {"objects", "secrets"})
    for name in databases:
        assert services[name]["hostname"] == name
        assert f"cluster_name={name}" in services[name]["command"]
        assert f'"{name}"' in (DOCKER / "cluster/primary/barnabas.sh").read_text()


def test_the_spark_job_finds_its_topics(tmp_path):
    path = DOCKER / "compose.spark.yaml"
    job = project(path)["services"]["job"]["environment"]
    config = loaded(prepared(path, tmp_path)).config
    created = {item.partition(":")[0] for item in config.create_topics}
    assert created == {job["INPUT"], job["OUTPUT"]}
    read = set(re.findall(r'environ\.get\("(\w+)"', (DOCKER / "spark/job.py").read_text()))
    assert read == {"BOOTSTRAP_SERVERS", "INPUT", "OUTPUT", "STATE"}
    assert set(job) <= read


@pytest.mark.parametrize("kind", ["cluster", "observability"])
def test_grafana_finds_prometheus_and_its_dashboards(kind):
    services = project(DOCKER / f"compose.{kind}.yaml")["services"]
    provisioning = DOCKER / "grafana/provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_text())[
        "datasources"
    ]
    (port,) = published(services["prometheus"])
    assert source["url"] == f"http://prometheus:{port}"
    (provider,) = yaml.safe_load((provisioning / "dashboards/barnabas.yaml").read_text())[
        "providers"
    ]
    assert f"./grafana:{provider['options']['path']}:ro" in services["grafana"]["volumes"]


def targets(configuration):
    """Return the targets of Prometheus."""
    return [
        target
        for job in configuration["scrape_configs"]
        for each in job["static_configs"]
        for target in each["targets"]
    ]


def test_prometheus_scrapes_the_broker():
    configuration = yaml.safe_load((DOCKER / "prometheus/prometheus.yml").read_text())
    assert targets(configuration) == ["broker:9644"]


def test_prometheus_scrapes_all_brokers_of_the_cluster():
    """Prometheus scrapes them like one broker, at other addresses, and sees no password."""
    alone, several = (
        yaml.safe_load((DOCKER / f"prometheus/{name}.yml").read_text())
        for name in ("prometheus", "cluster")
    )
    services = project(DOCKER / "compose.cluster.yaml")["services"]
    brokers = [each["hostname"] for name, each in services.items() if name.startswith("broker")]
    assert targets(several) == [f"{name}:9644" for name in brokers]
    for configuration in (alone, several):
        for job in configuration["scrape_configs"]:
            del job["static_configs"]
    assert several == alone
    prometheus = services["prometheus"]
    assert "--config.file=/etc/prometheus/cluster.yml" in prometheus["command"]
    shown = several["scrape_configs"][0]["authorization"]["credentials_file"]
    assert f"prometheus-secrets:{Path(shown).parent}:ro" in prometheus["volumes"]
    assert {each.split(":")[0] for each in prometheus["volumes"]}.isdisjoint(
        {"secrets", "database-secrets"}
    )
    (made,) = [each for each in services["secrets"]["volumes"] if each.startswith("prometheus-")]
    assert made.split(":")[1] == services["secrets"]["command"][3]


@by_name
def test_the_command_at_the_top_is_the_right_one(path):
    up, *others = re.findall(r"^#   (docker compose .*)$", path.read_text(), re.MULTILINE)
    for command in (up, *others):
        words = shlex.split(command)
        assert words[:4] == ["docker", "compose", "--file", f"docker/{path.name}"]
    assert shlex.split(up)[4] == "up"


@by_name_alone
def test_a_user_can_log_in_at_the_console(path, tmp_path):
    """The port is not on a loopback address, so a token or users of SASL have to exist."""
    found = loaded(prepared(path, tmp_path)).config
    assert not found.http_address[0]
    has_passwords = any(each.has_login for each in found.endpoints)
    assert has_passwords or found.http_bearer_token


@by_name
def test_the_file_says_how_to_show_what_opens_the_console(path):
    """The command that the file names prints the file that the broker reads."""
    text = path.read_text()
    shown = re.findall(r"exec ([\w-]+) cat (/[\w/.-]+)", text)
    ((service, file),) = shown
    settings = project(path)["services"][service]["environment"]
    token = settings.get("KAFKA_BARNABAS_HTTP_BEARER_TOKEN_FILE")
    expected = token or settings["BARNABAS_PROPERTIES"].replace("server.", "admin.")
    assert file == expected


def test_ports_of_docker_run_are_those_that_a_page_shows():
    """A page that names an address on this machine after `docker run` publishes its port."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "container.md").read_text(), re.DOTALL)
    commands = [each for each in blocks if "docker run -p" in each]
    assert commands
    for block in commands:
        published = set(re.findall(r"-p (?:127\.0\.0\.1:)?(\d+):", block))
        assert set(re.findall(r"localhost:(\d+)", block)) <= published
