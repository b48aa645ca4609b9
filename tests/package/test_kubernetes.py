"""The Kubernetes manifests: Kubernetes' own schemas, and what a broker reads of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from barnabas.broker.cluster.peers.settings import listener_of_brokers, security_of_brokers
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.scram_credentials import parse_scram_credentials
from tests.package.test_compose import DEFAULTS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docker" / "kubernetes"
KUSTOMIZATION = "kustomization.yaml"
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != KUSTOMIZATION)
OLDEST, NEWEST = "1.30.0", kubernetes_validate.latest_version()
NAME = {"app.kubernetes.io/name": "barnabas"}
DATA = "/var/lib/kafka/data"
SECRETS = "/etc/kafka/secrets"
POD_IP = "10.1.2.3"
SECRET = {
    "metadata": "postgresql://barnabas:secret@database-1,database-2/barnabas",
    "users": "SCRAM-SHA-512=[name=admin,password=a],SCRAM-SHA-512=[name=broker,password=b]",
    "broker.jaas": "org.apache.kafka.common.security.scram.ScramLoginModule required"
    ' username="broker" password="b";',
    "http-token": "a-token",
}


def read(name):
    return yaml.safe_load((FOLDER / name).read_text())


@pytest.fixture(scope="module")
def pod():
    return read("deployment.yaml")["spec"]["template"]["spec"]


@pytest.fixture
def broker(pod):
    (container,) = pod["containers"]
    return container


@pytest.fixture
def loaded(broker, tmp_path):
    """Return the broker's settings from its variables, with a Secret of the test."""
    for name, value in SECRET.items():
        (tmp_path / name).write_text(value + "\n")
    return load_config([], variables_of(broker, tmp_path), defaults=DEFAULTS)


def variables_of(broker, secrets):
    """Return the variables of a pod whose Secret is mounted at ``secrets``."""
    return {
        each["name"]: each["value"].replace(SECRETS, str(secrets)).replace("$(POD_IP)", POD_IP)
        for each in broker["env"]
        if "value" in each
    }


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_it_is_what_kubernetes_takes(path, version):
    kubernetes_validate.validate(yaml.safe_load(path.read_text()), version, strict=True)


def test_all_of_them_are_applied():
    assert sorted(read(KUSTOMIZATION)["resources"]) == [path.name for path in FILES]
    images = [each["name"] for each in read(KUSTOMIZATION)["images"]]
    assert images == [
        read("deployment.yaml")["spec"]["template"]["spec"]["containers"][0]["image"].partition(
            ":"
        )[0]
    ]


def test_everything_is_about_the_same_pods():
    deployment = read("deployment.yaml")["spec"]
    assert deployment["template"]["metadata"]["labels"] == NAME
    assert deployment["selector"]["matchLabels"] == NAME
    assert read("service.yaml")["spec"]["selector"] == NAME
    assert read("disruption-budget.yaml")["spec"]["selector"]["matchLabels"] == NAME
    assert read("network-policy.yaml")["spec"]["podSelector"]["matchLabels"] == NAME


def test_the_broker_understands_its_settings(loaded):
    assert (loaded.ignored, loaded.unknown) == ((), ())
    config = loaded.config
    assert config.metadata == SECRET["metadata"]
    assert config.data_directory == DATA
    assert config.http_address == ("", 9644)
    assert config.http_bearer_token == SECRET["http-token"]
    advertised = {each.name: each.advertised for each in config.endpoints}
    assert advertised == {"CLIENTS": (POD_IP, 9092), "BROKERS": (POD_IP, 19092)}


def test_nobody_gets_in_without_a_login(loaded):
    config = loaded.config
    assert all(each.has_login for each in config.endpoints)
    assert config.authorizer_class_name
    users = set(re.findall(r"name=(\w+)", SECRET["users"]))
    assert {f"User:{user}" for user in users} == set(config.super_users.split(";"))


def test_brokers_can_log_in_to_each_other(loaded):
    assert listener_of_brokers(loaded.config).name == "BROKERS"
    assert security_of_brokers(loaded.config).credential is not None


def test_what_it_reads_and_writes_is_mounted(pod, broker):
    volumes = {each["name"]: each for each in pod["volumes"]}
    mounts = {each["mountPath"]: each for each in broker["volumeMounts"]}
    assert {each["name"] for each in mounts.values()} == set(volumes)
    assert set(mounts) == {DATA, SECRETS, "/tmp"}
    assert all("emptyDir" in volumes[mounts[path]["name"]] for path in (DATA, "/tmp"))
    assert mounts[SECRETS]["readOnly"]
    # Only members of fsGroup may read a Secret's files.
    assert volumes["secrets"]["secret"]["defaultMode"] == 0o440
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]


def test_probes_and_ports_are_those_of_the_broker(broker, loaded):
    ports = {each["name"]: each["containerPort"] for each in broker["ports"]}
    listeners = {each.name.lower(): each.port for each in loaded.config.endpoints}
    assert ports == {**listeners, "http": loaded.config.http_address[1]}
    probes = {
        name: broker[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")
    }
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert [probes[name]["path"] for name in probes] == ["/livez", "/livez", "/readyz"]


def test_a_stop_has_the_time_that_the_broker_takes(pod, loaded):
    config = loaded.config
    takes_ms = config.shutdown_timeout_ms + config.shutdown_checkpoint_timeout_ms
    assert pod["terminationGracePeriodSeconds"] * 1000 > takes_ms


def test_the_page_makes_the_secret_that_is_read(broker, tmp_path):
    """A shell runs the lines of the page, and a broker loads the files that they make."""
    page = (ROOT / "docs" / "cluster.md").read_text()
    (lines,) = re.findall(r"^```sh\n(mkdir.*?)^```", page, re.MULTILINE | re.DOTALL)
    (folder,) = re.findall(r"create secret generic barnabas --from-file=(\S+)$", page, re.MULTILINE)
    subprocess.run(["sh", "-eu", "-c", lines], cwd=tmp_path, check=True)
    made = tmp_path / folder
    assert made.stat().st_mode & 0o777 == 0o700
    read_here = {
        each["value"].removeprefix(f"{SECRETS}/")
        for each in broker["env"]
        if SECRETS in each.get("value", "")
    }
    assert {each.name for each in made.iterdir()} == read_here == set(SECRET)
    config = load_config([], variables_of(broker, made), defaults=DEFAULTS).config
    own = security_of_brokers(config).credential
    wanted = {
        each.user: each.password for each in parse_scram_credentials(config.scram_credentials)
    }
    assert wanted.keys() == {"admin", "broker"}
    assert own.password == wanted["broker"] != wanted["admin"]
    assert len(config.http_bearer_token) == 32


# ---------------------------------------------------------------------------------------- small


def merged(base, patch):
    """Merge a patch as Kubernetes does: lists of what has a name by that name."""
    if isinstance(patch, dict):
        return base | {key: merged(base.get(key, {}), value) for key, value in patch.items()}
    if isinstance(patch, list):
        changes = {each["name"]: each for each in patch}
        assert changes.keys() <= {each["name"] for each in base}
        return [merged(each, changes.get(each["name"], {})) for each in base]
    return patch


@pytest.fixture
def small():
    """The Deployment as docker/kubernetes/small has it."""
    overlay = read(f"small/{KUSTOMIZATION}")
    assert overlay["resources"] == [".."]
    assert overlay["patches"] == [{"path": "deployment.yaml"}]
    return merged(read("deployment.yaml"), read("small/deployment.yaml"))


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_small_deployment_is_what_kubernetes_takes(small, version):
    kubernetes_validate.validate(small, version, strict=True)


def test_small_deployment_differs_in_requests_and_cache_only(small):
    base = read("deployment.yaml")
    assert small != base
    for deployment in (small, base):
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        del container["resources"]
        for volume in deployment["spec"]["template"]["spec"]["volumes"]:
            volume.get("emptyDir", {}).pop("sizeLimit", None)
    assert small == base


def test_all_small_pods_fit_on_a_node_with_two_cores(small):
    (container,) = small["spec"]["template"]["spec"]["containers"]
    requests = container["resources"]["requests"]
    pods = small["spec"]["replicas"] + small["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    assert pods * int(requests["cpu"].removesuffix("m")) <= 1000
    assert pods * int(requests["memory"].removesuffix("Mi")) <= 2048
    (cache,) = [e for e in small["spec"]["template"]["spec"]["volumes"] if e["name"] == "cache"]
    assert cache["emptyDir"]["sizeLimit"] == requests["ephemeral-storage"]
