"""The Helm chart: its schema, what Helm makes of it, and what a broker reads of that."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import subprocess
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml

from barnabas.broker.cluster.peers.settings import listener_of_brokers, security_of_brokers
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import parse_properties
from barnabas.broker.version import __version__
from tests.checkout import ROOT
from tests.counterparts.go import tool
from tests.package.test_compose import DEFAULTS
from tests.package.test_kubernetes import NEWEST, OLDEST, SECRET, variables_of
from tests.products import for_the_night

CHART = ROOT / "docker" / "chart"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
"""Kubernetes' own schemas, which kubeconform would fetch from the network otherwise."""

CASES = {
    "one": {},
    "one-secured": {
        "secretName": "barnabas",
        "settings": {"num.partitions": "3", "auto.create.topics.enable": False},
        "persistence": {
            "size": "1Gi",
            "storageClassName": "fast",
            "accessMode": "ReadWriteOncePod",
        },
        "image": {"repository": "example/barnabas", "digest": f"sha256:{'a' * 64}"},
    },
    "cluster": {"cluster": {"enabled": True}, "secretName": "barnabas"},
    "cluster-of-five": {
        "cluster": {"enabled": True, "replicas": 5},
        "secretName": "barnabas",
        "superUsers": ["admin", "broker", "alice"],
        "disruptionBudget": {"enabled": False},
        "networkPolicy": {
            "additionalPeers": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]
        },
        "image": {"repository": "barnabas", "pullSecrets": [{"name": "registry"}]},
        "podAnnotations": {"example.com/team": "data"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    },
}
"""Values by the name of the case; each value of the chart differs from its default in one case."""

REFUSED = {
    "a cluster without a Secret": {"cluster": {"enabled": True}},
    "a value that the chart does not know": {"clutser": {"enabled": True}},
    "a password among the settings": {"settings": {"ssl.keystore.password": "secret"}},
    "a setting of the chart itself": {"settings": {"advertised.listeners": "A://a:1"}},
    "a number that YAML may round": {"settings": {"log.retention.ms": 777777777}},
    "a volume of no size": {"persistence": {"size": "0Gi"}},
    "no brokers": {"cluster": {"enabled": True, "replicas": 0}, "secretName": "a"},
    "a user that would end the list": {"superUsers": ["admin;User:alice"]},
}


def with_defaults(values, defaults=VALUES):
    """Merge values into those of the chart, as Helm does."""
    return defaults | {
        key: with_defaults(value, defaults[key])
        if isinstance(value, dict) and isinstance(defaults.get(key), dict)
        else value
        for key, value in values.items()
    }


def test_chart_has_the_version_of_barnabas():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize("case", CASES)
def test_schema_accepts(case):
    jsonschema.validate(with_defaults(CASES[case]), SCHEMA, jsonschema.Draft7Validator)


@pytest.mark.parametrize("case", REFUSED)
def test_schema_refuses(case):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(with_defaults(REFUSED[case]), SCHEMA, jsonschema.Draft7Validator)


def test_schema_has_each_value_of_the_chart_and_no_other():
    def names(values, schema, prefix=""):
        listed = schema.get("properties", {})
        assert set(values) == set(listed) - {"global"} or not listed, prefix
        for key, value in values.items():
            if isinstance(value, dict) and "properties" in listed.get(key, {}):
                names(value, listed[key], f"{prefix}{key}.")

    names(VALUES, SCHEMA)


# ----------------------------------------------------------------------------------- with Helm


def schemas_in_one_file_each(version, kinds, directory):
    """Write the schemas of kinds with their definitions inside: kubeconform follows no others."""
    source = SCHEMAS / f"v{version}-local-strict"
    shared = json.loads((source / "_definitions.json").read_text())["$defs"]
    for kind, group in kinds:
        name = "-".join([kind.lower(), *(part.partition(".")[0] for part in group.split("/"))])
        text = (source / f"{name}.json").read_text().replace("/api/_definitions.json#/", "#/")
        (directory / f"{name}.json").write_text(json.dumps(json.loads(text) | {"$defs": shared}))
    return directory / "{{.ResourceKind}}{{.KindSuffix}}.json"


def helm(*arguments):
    return subprocess.run(
        [tool("helm"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(params=CASES)
def rendered(request, tmp_path):
    """The objects of a case, by their kinds; and the text."""
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(CASES[request.param]))
    linted = helm("lint", "--strict", "--values", values, CHART)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    result = helm("template", "barnabas", CHART, "--namespace", "streams", "--values", values)
    assert result.returncode == 0, result.stderr
    documents = [each for each in yaml.safe_load_all(result.stdout) if each]
    objects = {each["kind"]: each for each in documents}
    assert len(objects) == len(documents)
    return request.param, objects, result.stdout


def installs_of_the_page():
    """Return the arguments of each `helm install` of docs/helm.md."""
    page = (ROOT / "docs" / "helm.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [
        shlex.split(block.replace("\\\n", "").removeprefix("helm install ")) for block in blocks
    ]


def values_of(arguments):
    """Return the values of `--set` among the arguments, as Helm nests them."""
    values = {}
    for option, given in itertools.pairwise(arguments):
        if option == "--set":
            path, _, text = given.partition("=")
            *parents, last = path.split(".")
            inner = values
            for each in parents:
                inner = inner.setdefault(each, {})
            inner[last] = yaml.safe_load(text)
    return values


def test_schema_accepts_the_values_of_the_page():
    installs = installs_of_the_page()
    assert len(installs) == 2
    for name, chart, *arguments in installs:
        assert (name, chart) == ("barnabas", "docker/chart")
        values = values_of(arguments)
        assert values["image"] == {"repository": "registry.example/barnabas"}
        jsonschema.validate(with_defaults(values), SCHEMA, jsonschema.Draft7Validator)


@for_the_night(beside="tests/package/test_chart.py::test_schema_accepts")
def test_kubernetes_accepts_what_helm_renders(rendered, tmp_path):
    _, objects, text = rendered
    kinds = [(each["kind"], each["apiVersion"]) for each in objects.values()]
    for version in (OLDEST, NEWEST):
        for each in objects.values():
            kubernetes_validate.validate(each, version, strict=True)
        location = schemas_in_one_file_each(version, kinds, tmp_path)
        checked = subprocess.run(
            [tool("kubeconform"), "-strict", "-summary", "-schema-location", str(location)],
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert f"Valid: {len(objects)}, Invalid: 0, Errors: 0, Skipped: 0" in checked.stdout


@for_the_night(beside="tests/package/test_chart.py::test_schema_accepts")
def test_broker_understands_the_settings_that_helm_renders(rendered, tmp_path):
    case, objects, _ = rendered
    workload = objects.get("StatefulSet") or objects["Deployment"]
    pod = workload["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for name, value in SECRET.items():
        (tmp_path / name).write_text(value + "\n")
    properties = parse_properties(objects["ConfigMap"]["data"]["server.properties"])
    loaded = load_config(properties, variables_of(container, tmp_path), defaults=DEFAULTS)
    assert (loaded.ignored, loaded.unknown) == ((), ())
    config = loaded.config
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    listeners = {each.name.lower(): each.port for each in config.endpoints}
    assert ports == {**listeners, "http": config.http_address[1]}
    takes_ms = config.shutdown_timeout_ms + config.shutdown_checkpoint_timeout_ms
    assert pod["terminationGracePeriodSeconds"] * 1000 > takes_ms
    is_secured = bool(CASES[case].get("secretName"))
    assert [each.has_login for each in config.endpoints] == [is_secured] * len(listeners)
    assert bool(config.authorizer_class_name) == is_secured
    if "cluster" in CASES[case]:
        assert config.metadata == SECRET["metadata"]
        assert listener_of_brokers(config).name == "BROKERS"
        assert security_of_brokers(config).credential is not None
    else:
        assert {each.advertised[0] for each in config.endpoints} == {"barnabas.streams.svc"}
    mounts = {each["name"] for each in container["volumeMounts"]}
    volumes = {each["name"] for each in pod["volumes"]}
    claims = {each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", [])}
    assert mounts == volumes | claims
    if case == "one-secured":
        assert (config.num_partitions, config.auto_create_topics_enable) == (3, False)


@for_the_night(beside="tests/package/test_chart.py::test_schema_accepts")
def test_cluster_of_the_chart_is_that_of_the_manifests(rendered):
    case, objects, _ = rendered
    if case != "cluster":
        assert ("PodDisruptionBudget" in objects) == (case == "cluster")
        return
    manifest = yaml.safe_load((ROOT / "docker/kubernetes/deployment.yaml").read_text())
    ours = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    theirs = manifest["spec"]["template"]["spec"]["containers"][0]
    for key in ("startupProbe", "livenessProbe", "readinessProbe", "securityContext", "ports"):
        assert ours[key] == theirs[key], key
    named = [{each["name"]: each for each in container["env"]} for container in (ours, theirs)]
    assert named[0] == named[1]
    assert objects["Deployment"]["spec"]["strategy"] == manifest["spec"]["strategy"]
    budget = yaml.safe_load((ROOT / "docker/kubernetes/disruption-budget.yaml").read_text())
    assert (
        objects["PodDisruptionBudget"]["spec"]["maxUnavailable"]
        == (budget["spec"]["maxUnavailable"])
    )


@for_the_night(beside="tests/package/test_chart.py::test_schema_refuses")
@pytest.mark.parametrize("case", REFUSED)
def test_helm_refuses_the_values_that_the_schema_refuses(case, tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(REFUSED[case]))
    result = helm("template", "barnabas", CHART, "--values", values)
    assert result.returncode != 0
    assert "values don't meet the specifications of the schema" in result.stderr
