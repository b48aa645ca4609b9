"""Faults of ``barnabas prove`` at processes: what they reach, and which ones count as performed."""

from __future__ import annotations

import signal
import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest

from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.proving import calls as names
from barnabas.broker.cli.proving import schedule
from barnabas.broker.cli.proving.calls import Call, Topics
from barnabas.broker.cli.proving.disturbance import Disturbance
from barnabas.broker.cli.proving.faults import Fault
from barnabas.broker.cli.proving.instances import Instances
from barnabas.broker.cli.proving.owners import owner_of
from barnabas.broker.cli.proving.passing import Passage
from barnabas.broker.cli.proving.timeline import Timeline
from barnabas.broker.cli.proving.wiretap import Wiretap
from tests.waiting import wait_until

DAEMON = """
import subprocess, sys, time
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open(sys.argv[1] + "/child", "w").write(f"{child.pid}\\n")
time.sleep(1000)
"""
"""Starts a child in a session of its own, which a signal to its own group does not reach."""


@pytest.fixture
def timeline() -> Timeline:
    return Timeline()


@pytest.fixture
def instances(tmp_path, timeline):
    program = tmp_path / "program.py"
    program.write_text(DAEMON)
    command = [sys.executable, str(program), str(tmp_path)]
    instances = Instances(command, "localhost:9092", tmp_path, timeline)
    yield instances
    instances.close()


@pytest.fixture
def child(instances, tmp_path) -> int:
    """Process ID of the child of instance 1."""
    instances.start(1)
    path = tmp_path / "child"
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), "the child has started")
    return int(path.read_text())


def state_of(process: int) -> str:
    """Return the state of a process in one letter, Z if it has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return "Z"
    return text.rpartition(")")[2].split()[0]


def test_kill_reaches_a_child_in_a_session_of_its_own(instances, child):
    assert instances.kill(1) is True
    wait_until(lambda: state_of(child) == "Z", "the child has ended")
    assert instances.kill(1) is False


def test_kill_at_a_request_reaches_a_child_in_a_session_of_its_own(instances, child):
    instances.signal_named("1", signal.SIGKILL, "at its Produce")
    wait_until(lambda: state_of(child) == "Z", "the child has ended")


def test_pause_stops_a_child_in_a_session_of_its_own_until_it_is_over(instances, child):
    paused = instances.pause(1)
    wait_until(lambda: state_of(child) == "T", lambda: state_of(child))
    instances.resume(paused)
    wait_until(lambda: state_of(child) == "S", lambda: state_of(child))


def test_kill_leaves_other_instances_alone(instances, child):
    other = instances.start(2)
    instances.kill(1)
    assert other.exit_code is None


@pytest.fixture
def wiretap(timeline) -> Wiretap:
    return Wiretap(Topics("orders", "invoices", {}), dict, timeline)


@pytest.fixture
def disturbance(instances, timeline, wiretap) -> Disturbance:
    """Disturbance without a broker of its own; no time passes for its processes."""
    passage = Passage(Cluster([], 1.0), wiretap, instances, timeline)
    return Disturbance(instances, timeline, None, wiretap, passage)


def performed(disturbance: Disturbance) -> list[str]:
    return [each.fault.kind for each in disturbance.performed]


def test_fault_counts_only_if_it_harmed_something(instances, timeline, disturbance):
    assert disturbance.begin(Fault(schedule.PAUSE, client="1")) is None
    assert disturbance.begin(Fault(schedule.BROKER)) is None
    instances.start(1)
    for kind in (schedule.PAUSE, schedule.KILL):
        cure = disturbance.begin(Fault(kind, client="1"))
        assert cure is not None
        cure()
    assert performed(disturbance) == [schedule.PAUSE, schedule.KILL]
    times = [each.at_s for each in disturbance.performed]
    assert times == sorted(times)
    assert times[-1] <= timeline.now_s()


def test_faults_of_one_instance_that_overlap_leave_one_process(instances, disturbance):
    instances.start(1)
    cures = [
        disturbance.begin(Fault(kind, client=client))
        for kind, client in [
            (schedule.KILL, "1"),
            (schedule.KILL, "1"),
            (schedule.JOIN, "2"),
            (schedule.JOIN, "2"),
        ]
    ]
    for cure in filter(None, cures):
        cure()
    assert [each.name for each in instances.processes] == ["1b"]
    assert performed(disturbance) == [schedule.KILL, schedule.JOIN]
    assert disturbance.begin(Fault(schedule.JOIN, client="2")) is not None
    assert [each.name for each in instances.processes] == ["1b", "2b"]


def test_zombie_runs_beside_its_successor(instances):
    instances.start(1)
    assert instances.replace(1) is not None
    assert [each.name for each in instances.processes] == ["1b", "1"]


def test_cut_counts_only_if_its_request_came(instances, wiretap, disturbance):
    instances.start(1)
    wiretap.answered(Call(names.FETCH, "1", 0.0, read={0: (0, 1)}))
    for calls in ([], [Call(names.PRODUCE, "1", 0.1)]):
        cure = disturbance.begin(Fault(schedule.CUT_BEFORE, client="1"))
        assert cure is not None
        for call in calls:
            assert wiretap.taken(call) is not None
        cure()
    assert performed(disturbance) == [schedule.CUT_BEFORE]


def test_end_of_one_fault_leaves_the_request_of_the_next_one(instances, wiretap, disturbance):
    instances.start(1)
    wiretap.answered(Call(names.FETCH, "1", 0.0, read={0: (0, 1)}))
    end_cut = disturbance.begin(Fault(schedule.CUT_AFTER, client="1"))
    assert wiretap.taken(Call(names.PRODUCE, "1", 0.1)) is not None
    disturbance.begin(Fault(schedule.KILL, client="1", how=schedule.BEFORE))
    end_cut()
    assert wiretap.is_armed


def test_connection_of_a_child_in_a_session_of_its_own_has_the_name_of_its_process(
    tmp_path, timeline
):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connecting = f"import socket, time; s = socket.create_connection(('127.0.0.1', {port}))"
        child = [sys.executable, "-c", f"{connecting}; time.sleep(1000)"]
        program = f"import subprocess; subprocess.run({child!r}, start_new_session=True)"
        with closing(
            Instances([sys.executable, "-c", program], "localhost:9092", tmp_path, timeline)
        ) as instances:
            instances.start(1)
            instances.start(2)
            names_found = []
            for _ in range(2):
                connection, (_, client_port) = server.accept()
                with connection:
                    names_found.append(owner_of(client_port, port, instances.marks))
            assert sorted(names_found) == ["1", "2"]
            assert owner_of(port, port, instances.marks) == ""
