"""One broker of a cluster in which a test says what becomes of wishes for other leaders."""

from __future__ import annotations

import asyncio

from tests.broker.several import BrokerWithView


class ScriptedMoves:
    """The wishes of a cluster, whose store answers when a test lets it."""

    def __init__(self) -> None:
        self.wishes: dict[int, int] = {}
        self.asked: list[dict[int, int | None]] = []
        self.is_away = False

    def wanted(self, partition_id: int) -> int | None:
        return self.wishes.get(partition_id)

    async def want(self, wishes) -> None:
        self.asked.append(dict(wishes))
        if self.is_away:
            await asyncio.Event().wait()
        for partition_id, node_id in wishes.items():
            self.wishes.pop(partition_id, None)
            if node_id is not None:
                self.wishes[partition_id] = node_id


class OneOfThree(BrokerWithView):
    def _new_server(self, view=None, peers=None, durable_logs=None):
        server = super()._new_server(view, peers, durable_logs)
        self.moves = server.moves = ScriptedMoves()
        return server
