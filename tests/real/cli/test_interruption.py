"""Ctrl-C is noted, and interrupts what waits; the second one interrupts everything."""

import signal
import threading

import pytest

from barnabas.broker.cli.interruption import Interruption


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


def test_the_first_signal_is_noted():
    with Interruption() as interruption:
        assert (interruption.has_come(), interruption.exit_code) == (False, 0)
        ctrl_c()
        assert (interruption.has_come(), interruption.exit_code) == (True, 130)


def test_the_second_one_interrupts():
    with Interruption():
        ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()


def test_a_wait_is_interrupted():
    with Interruption() as interruption:
        with pytest.raises(KeyboardInterrupt), interruption.wait():
            ctrl_c()
        assert interruption.exit_code == 130


def test_a_wait_after_the_signal_does_not_begin():
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), interruption.wait():
            pytest.fail("it has begun")
        assert interruption.exit_code == 143


def test_afterwards_all_is_as_before():
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with Interruption():
        pass
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_threads_have_no_signals():
    errors = []

    def work():
        try:
            with Interruption() as interruption, interruption.wait():
                pass
        except BaseException as error:  # noqa: BLE001  it is what the test looks at
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []
