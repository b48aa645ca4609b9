"""A short round of what happens to brokers, links and servers; longer by `make nemesis-cluster`."""

import warnings

import pytest

from tests.postgresql.cluster_nemesis import QUICK_KINDS, torment
from tests.seeds import SEED

SECONDS = 6


@pytest.mark.timeout(600)
def test_no_anomaly_whatever_happens_to_brokers_links_and_servers(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = torment(tmp_path, SEED, SECONDS, print, QUICK_KINDS)
    print("\n  ".join(outcome.lines()))
    assert outcome.report.violations == []
    assert outcome.wrong == []
    roles = {name.partition("-")[0] for name in outcome.committed}
    assert roles == {"writer", "sender", "transformer"}
