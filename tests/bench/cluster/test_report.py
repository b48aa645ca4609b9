"""The tables of the cluster's page, and where producers write."""

from tests.bench.cluster.report import process_table, target_table
from tests.bench.cluster.rows import ROWS
from tests.bench.cluster.run import Measured, Results
from tests.bench.cluster.sides import Layout, is_spread

_MEASURED = Measured(100.0, 0.01, 0.02, 0.005, 0.006, 1e-4, 2e-4, 0.1, 0.5)
WHERE = Layout({1: 9092, 2: 9093, 3: 9094}, {1: [0, 3], 2: [1, 4], 3: [2, 5]})


def test_targets_are_compared_with_the_measurements():
    results = Results()
    for row in ROWS:
        results.rows["barnabas", row.key] = _MEASURED
        results.rows["kafka", row.key] = _MEASURED._replace(rate=40.0)
    lines = target_table(results, ROWS)[2:]
    assert sum("missed" in each for each in lines) == 1, "10 ms are more than 8, less than 30"
    assert sum("2.50, met" in each for each in lines) == 8
    measured = _MEASURED._replace(brokers_cpu_s_of_mb=0.01, store_cpu_s_of_mb=0.01)
    results.rows["objects", "bulk-three"] = measured
    results.rows["kafka", "bulk-three"] = measured._replace(store_cpu_s_of_mb=0.0)
    assert any(
        "on an object store" in each and "| 50 " in each and "0.50, missed" in each
        for each in target_table(results, ROWS)
    )
    results.rows["kafka", "transaction-1-two"] = _MEASURED._replace(rate=51.0)
    assert any("1.96, missed" in each for each in target_table(results, ROWS))


def test_a_cluster_that_was_not_measured_has_no_line():
    results = Results(
        start_up_s={"kafka": 1.0},
        takeover_s={"kafka": (9.0, 9.5)},
        idle_bytes={"kafka": (1_000_000_000, 0)},
        loaded_bytes={"kafka": (2_000_000_000, 0)},
    )
    *_, line = process_table(results, ["barnabas", "kafka"])
    assert [cell.strip() for cell in line.split("|")[1:-1]] == [
        "Apache Kafka", "1.0", "9.0", "9.5", "1,000", "", "2,000", "",
    ]  # fmt: skip


def test_a_topic_is_spread_when_all_lead_equally_much():
    assert is_spread(WHERE)
    assert not is_spread(WHERE._replace(led_by=WHERE.led_by | {-1: [6, 7]}))
    assert not is_spread(WHERE._replace(led_by={1: [0, 1], 2: [2, 3]}))
    assert not is_spread(WHERE._replace(led_by=WHERE.led_by | {3: [2]}))
    assert WHERE.leader_of(4) == 2
