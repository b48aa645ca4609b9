"""Servers that are accepted, accepted with a warning, and refused."""

import pytest

from barnabas.storage.postgresql.durability import Durability, NotDurable, judge, missing_standby

SYNCHRONOUS = Durability("on", "on", "on", "FIRST 1 (*)", 1, 15, 1)
SINGLE = Durability("on", "on", "on", "", 0, 17, 0)


@pytest.mark.parametrize(
    "found",
    [
        SYNCHRONOUS,
        SYNCHRONOUS._replace(synchronous_commit="remote_apply"),
        # A disconnected standby delays commits, and loses none.
        SYNCHRONOUS._replace(standbys=0),
    ],
)
def test_a_synchronous_standby_is_what_is_wanted(found):
    assert judge(found) is None


@pytest.mark.parametrize("commit", ["on", "remote_apply"])
def test_a_single_server_is_warned_of(commit):
    assert "one server" in judge(SINGLE._replace(synchronous_commit=commit))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (SYNCHRONOUS._replace(version=14), "version 14"),
        (SINGLE._replace(standbys=1), "asynchronous standby"),
        (SINGLE._replace(standbys=1, synchronous_standby_names=" "), "asynchronous standby"),
        (SINGLE._replace(fsync="off"), "fsync = off"),
        (SYNCHRONOUS._replace(fsync="off"), "fsync = off"),
        (SYNCHRONOUS._replace(full_page_writes="off"), "full_page_writes = off"),
        *(
            (server._replace(synchronous_commit=commit), f"synchronous_commit = {commit}")
            for server in (SINGLE, SYNCHRONOUS)
            for commit in ("off", "local", "remote_write")
        ),
    ],
)
def test_server_that_may_lose_commits_is_refused(found, why):
    with pytest.raises(NotDurable, match=why):
        judge(found)


def test_a_commit_that_waits_for_no_connected_standby_says_so():
    assert missing_standby(SYNCHRONOUS) == missing_standby(SINGLE) == ""
    assert missing_standby(SYNCHRONOUS._replace(confirming_standbys=0)) == (
        "PostgreSQL takes connections, but commits wait for a synchronous standby"
        " (synchronous_standby_names = FIRST 1 (*)), and none is connected"
    )
