"""Input of the process that runs Spark, and the use of its output."""

import pytest

from tests.bench.spark_job import Job, Taken, Target, summarise, turns
from tests.bench.spark_rows import SPARK_ROWS
from tests.bench.spark_run import FULL, QUICK, WorkerFailed, measured_on, run_worker

JOB = Job("sink", "stock", 2, 4, 1, 0, 5, "/tmp/x", {"barnabas": Target("127.0.0.1:1", 7)})


def test_a_job_arrives_as_it_was_sent():
    assert Job.load(JOB.dump()) == JOB


def test_medians_are_over_the_samples_of_all_rounds():
    rounds = [Taken([0.1, 0.5, 0.2], 100, 0.3), Taken([0.9, 0.2], 100, 0.2)]
    measured = summarise(rounds)
    assert measured.p50_s == 0.2
    assert measured.p95_s == 0.9
    assert measured.rate == pytest.approx(500)
    assert measured.broker_cpu_s == pytest.approx(0.1)
    assert measured.samples == 5
    assert measured.row_cpu_s is None


def test_cpu_time_of_a_row_is_that_of_spark_and_broker():
    rounds = [Taken([0.1, 0.5], 100, 0.3, 0.9), Taken([0.9], 100, 0.2, 0.1)]
    assert summarise(rounds).row_cpu_s == pytest.approx(1.5 / 300)


def test_brokers_take_turns_at_being_first():
    assert turns(["barnabas", "kafka"], 2) == [
        (1, "barnabas"),
        (1, "kafka"),
        (2, "kafka"),
        (2, "barnabas"),
    ]


def test_no_broker_is_measured_in_a_jvm_that_has_not_run_the_query_yet():
    for row in (row for row in SPARK_ROWS if row.against_kafka):
        assert FULL[row.kind].warm_up_samples > 0
        assert QUICK[row.kind].warm_up_samples > 0


def test_each_kind_of_row_has_its_effort():
    assert {row.kind for row in SPARK_ROWS} == set(FULL) == set(QUICK)


def test_a_sink_is_measured_on_one_broker_and_a_query_on_all():
    brokers = {"barnabas": object(), "kafka": object()}
    kinds = {row.kind: set(measured_on(brokers, row)) for row in SPARK_ROWS}
    assert kinds == {
        "trigger": {"barnabas", "kafka"},
        "real-time": {"barnabas", "kafka"},
        "read": {"barnabas", "kafka"},
        "sink": {"barnabas"},
        "sink-row": {"barnabas"},
    }
    assert set(measured_on({"kafka": object()}, SPARK_ROWS[-1])) == {"kafka"}


def test_error_output_of_a_failed_worker_is_reported(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(WorkerFailed, match="no such place"):
        run_worker(["/bin/sh", "-c", "echo no such place >&2; exit 3"], "", log, timeout_s=60)


def test_a_worker_and_what_it_started_end_with_its_time(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(WorkerFailed, match=r"more than 0\.2 s"):
        run_worker(["/bin/sh", "-c", "sleep 600; sleep 600"], "", log, timeout_s=0.2)


def test_a_worker_gets_its_job_and_its_answer_is_returned(tmp_path):
    assert run_worker(["/bin/cat"], "the job", tmp_path / "log", timeout_s=60) == "the job"
