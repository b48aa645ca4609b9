"""Apicurio Registry with its storage in topics (`kafkasql`), through kills.

The registry and the broker are killed with -9 while schemas are registered. Each schema whose
registration was acknowledged keeps its id, also for a registry that reads the topics again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.request import Request

import pytest

from tests.counterparts.apicurio import Registry, in_topics
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.http_client import urlopen
from tests.interop.connect.faults import ConnectFaults, Rounds
from tests.products import for_the_night
from tests.seeds import SEED
from tests.waiting import wait_until

TIMEOUT_S = 5
SUBJECTS = 4
AT_ONCE = 10
JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


class Schemas:
    """Schemas that are registered one after the other, each again until it is acknowledged."""

    def __init__(self, registry: Registry) -> None:
        self.ids: dict[str, int] = {}
        """Ids of acknowledged schemas, by their text."""
        self.failed = 0
        """The number of registrations without an acknowledgement."""
        self._registry = registry

    def register_some(self) -> None:
        """Register the next schemas, until one is not acknowledged."""
        for _ in range(AT_ONCE):
            if not self.register():
                return

    def register(self) -> bool:
        """Try once to register the next schema; return whether it was acknowledged."""
        number = len(self.ids)
        schema = schema_of(number)
        body = json.dumps({"schema": schema}).encode()
        url = f"{self._registry.url}/subjects/{subject_of(number)}/versions"
        request = Request(url, data=body, headers=JSON, method="POST")
        try:
            with urlopen(request, timeout=TIMEOUT_S) as response:
                self.ids[schema] = json.load(response)["id"]
        except OSError:
            self.failed += 1
            return False
        return True

    def check(self) -> None:
        """Check that the registry has each schema by its id, and no schema twice."""
        for schema, number in self.ids.items():
            assert json.loads(self._get(f"/schemas/ids/{number}")["schema"]) == json.loads(schema)
        versions = {
            subject: self._get(f"/subjects/{subject}/versions")
            for subject in self._get("/subjects")
        }
        expected = {
            subject_of(first): list(range(1, 1 + len(range(first, len(self.ids), SUBJECTS))))
            for first in range(SUBJECTS)
        }
        assert versions == expected

    def _get(self, path: str):
        with urlopen(f"{self._registry.url}{path}") as response:
            return json.load(response)


def subject_of(number: int) -> str:
    """Return the subject of a schema."""
    return f"subject-{number % SUBJECTS}"


def schema_of(number: int) -> str:
    """Return a schema that no other number has, and that all others are compatible with."""
    field = {"name": f"field_{number}", "type": ["null", "string"], "default": None}
    return json.dumps({"type": "record", "name": "Record", "fields": [field]})


@pytest.fixture
def broker(tmp_path) -> Iterator[BarnabasProcess]:
    """A broker; the registry creates its topics."""
    with BarnabasProcess(tmp_path / "broker") as running:
        yield running


@pytest.fixture
def registry(broker, tmp_path) -> Iterator[Registry]:
    """A registry with its storage in topics of the broker."""
    with in_topics(tmp_path / "apicurio", broker.bootstrap_servers) as running:
        yield running


@for_the_night(
    beside="tests/interop/test_idempotence.py::test_nothing_is_lost_doubled_or_reordered_through_kills"
)
@pytest.mark.timeout(1200)
def test_registry_in_topics_keeps_each_schema_through_kills(broker, registry, say):
    schemas = Schemas(registry)
    faults = ConnectFaults([broker], [registry], schemas.register_some)
    rounds = Rounds(faults, SEED)
    rounds.run()
    wait_until(schemas.register, registry.output)
    schemas.check()
    registry.kill()
    broker.kill()
    broker.restart()
    registry.launch()
    registry.wait_until_ready()
    schemas.check()
    say(f"{len(schemas.ids)} schemas, {dict(rounds.faults)};")
    say(f"{schemas.failed} registrations failed, the registry ended {faults.ended} times by itself")
