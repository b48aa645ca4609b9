"""The wait that all tests share: it ends, and says for what it was."""

from __future__ import annotations

import threading

import pytest

from tests.waiting import until, wait_until

A_MOMENT_S = 0.02


def test_it_waits_for_what_another_thread_does():
    happened = threading.Event()
    threading.Timer(A_MOMENT_S, happened.set).start()
    assert wait_until(happened.is_set) > 0
    assert happened.is_set()


def test_it_ends_and_says_what_was_waited_for():
    with pytest.raises(AssertionError, match=r"^not within 0\.02 s: rain"):
        wait_until(lambda: False, "rain", seconds=A_MOMENT_S)
    with pytest.raises(AssertionError, match=r"^not within 0\.02 s: 5 of 6"):
        wait_until(lambda: False, lambda: "5 of 6", seconds=A_MOMENT_S)


def test_without_words_it_shows_the_condition():
    drops: list[int] = []
    with pytest.raises(AssertionError, match=r"^not within 0\.02 s: .*len\(drops\) == 7"):
        wait_until(lambda: len(drops) == 7, seconds=A_MOMENT_S)
    with pytest.raises(AssertionError, match=r"^not within 0\.02 s: def is_set"):
        wait_until(threading.Event().is_set, seconds=A_MOMENT_S)
    with pytest.raises(AssertionError, match=r"^not within 0\.02 s: <method-wrapper .__len__"):
        wait_until([].__len__, seconds=A_MOMENT_S)


async def test_the_loop_goes_on_meanwhile_and_the_wait_ends():
    happened = threading.Event()
    threading.Timer(A_MOMENT_S, happened.set).start()
    await until(happened.is_set)
    assert happened.is_set()
    with pytest.raises(AssertionError, match=r"^not within 0\.02 s: rain"):
        await until(lambda: False, "rain", seconds=A_MOMENT_S)
