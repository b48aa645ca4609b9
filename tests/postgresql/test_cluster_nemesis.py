"""A short round of what happens to brokers, links and servers; longer by `make nemesis-cluster`."""

import warnings
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException

from barnabas.storage.objects.blob_store import SegmentKey, UploadKey
from tests.postgresql import cluster_nemesis, object_nemesis
from tests.postgresql.cluster_nemesis import QUICK_KINDS, is_right, torment
from tests.postgresql.object_nemesis import MOST_UNNAMED, Objects
from tests.postgresql.object_stores import BUCKET
from tests.products import for_the_night
from tests.seeds import SEED

SECONDS = 6


@for_the_night(
    beside="tests/postgresql/test_cluster.py::test_three_brokers_are_one_cluster_after_any_one_is_killed"
)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("objects", [False, True], ids=["rows", "objects"])
def test_faults_of_brokers_links_and_servers_cause_no_anomaly(tmp_path, objects):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = torment(tmp_path, SEED, SECONDS, print, QUICK_KINDS, objects=objects)
    print("\n  ".join(outcome.lines()))
    logs = [path.read_text() for path in tmp_path.glob("postgresql-*.log")]
    assert len(logs) == 2
    assert all("database system" in log for log in logs), "of both servers"
    assert outcome.report.violations == []
    assert outcome.wrong == []
    roles = {name.partition("-")[0] for name in outcome.committed}
    assert roles == {"writer", "sender", "transformer"}


@pytest.mark.parametrize("error", [KafkaException("refused"), TimeoutError("in vain")])
def test_a_round_whose_clients_raise_is_wrong_and_ends_no_others(
    error, tmp_path, monkeypatch, capsys
):
    def raises(*_arguments, **_options):
        raise error

    monkeypatch.setattr(cluster_nemesis, "torment", raises)
    assert not is_right(tmp_path, SEED, SECONDS, print)
    assert str(error) in capsys.readouterr().err


class Rows:
    """Pair of servers whose rows a test gives."""

    def __init__(self, *keys):
        self.primary = self
        self.keys = keys

    def execute(self, statement):
        return [("c",)] if "cluster_id" in statement else [(each,) for each in self.keys]


@pytest.mark.parametrize("stored", ["right", "missing", "unused"])
def test_lost_object_and_objects_that_stay_are_reported(tmp_path, monkeypatch, stored):
    monkeypatch.setattr(object_nemesis, "GARBAGE_S", 0.05)
    uploads = [UploadKey(1, 0, number, 1).text for number in range(MOST_UNNAMED + 2)]
    segment = SegmentKey(1, 0, 1, 0)
    named = [uploads[0], segment.text]
    found = [uploads[0], segment.text, segment.sidecar]
    if stored == "missing":
        found.remove(segment.sidecar)
    if stored == "unused":
        found += uploads[1:]
    for key in found:
        path = tmp_path / BUCKET / "prefix" / "c" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    objects = Objects(SimpleNamespace(objects=tmp_path), None, None)
    assert (
        objects.complaints(Rows(*named))
        == {
            "right": [],
            "missing": [f"object {segment.sidecar} is missing"],
            "unused": [f"{MOST_UNNAMED + 1} unused objects are not deleted"],
        }[stored]
    )
