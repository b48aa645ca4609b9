"""Scripted peer and its client; afterwards no task or connection of either may be left."""

from __future__ import annotations

import asyncio

import pytest

from tests.broker.peers.scripted import Asking, ScriptedPeer
from tests.worlds import world

__all__ = ["world"]


@pytest.fixture
async def peer():
    peer = ScriptedPeer()
    await peer.start()
    yield peer
    await peer.stop()


@pytest.fixture
async def new_asking(peer):
    """Make who asks, with other limits."""
    made = []

    def make(**limits) -> Asking:
        made.append(Asking(peer, **limits))
        return made[-1]

    yield make
    for asking in made:
        await asking.client.close()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in left if "Link" in repr(task)]


@pytest.fixture
async def asking(new_asking):
    return new_asking()
