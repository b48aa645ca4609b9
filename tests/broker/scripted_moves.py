"""One broker of a cluster in which a test says what becomes of wishes for other leaders."""

from __future__ import annotations

import asyncio

from tests.broker.several import BrokerWithView


class ScriptedMoves:
    """The wishes of a cluster, whose store answers when a test lets it."""

    def __init__(self, view) -> None:
        self._view = view
        self.wishes: dict[int, int] = {}
        self.pins: dict[int, int] = {}
        self.asked: list[dict[int, int | None]] = []
        """What was wished for, without pins."""
        self.asked_to_pin: list[dict[int, int | None]] = []
        self.cordoned: set[int] = set()
        self.is_away = False

    def wanted(self, partition_id: int) -> int | None:
        return self.wishes.get(partition_id)

    def pinned(self, partition_id: int) -> int | None:
        return self.pins.get(partition_id)

    def takes_partitions(self, node_id: int) -> bool:
        in_service = {node.node_id for node in self._view.nodes}
        return node_id in in_service - self.cordoned

    async def want(self, wishes) -> None:
        self.asked.append(dict(wishes))
        await self._answer()
        self._note(self.wishes, wishes)

    async def pin(self, pins) -> None:
        self.asked_to_pin.append(dict(pins))
        await self._answer()
        self._note(self.pins, pins)
        self._note(
            self.wishes,
            {
                partition_id: None if self._leads(node_id, partition_id) else node_id
                for partition_id, node_id in pins.items()
            },
        )

    def _leads(self, node_id: int | None, partition_id: int) -> bool:
        return self._view.leader_of(partition_id).node_id == node_id

    async def _answer(self) -> None:
        if self.is_away:
            await asyncio.Event().wait()

    @staticmethod
    def _note(noted, asked) -> None:
        for partition_id, node_id in asked.items():
            noted.pop(partition_id, None)
            if node_id is not None:
                noted[partition_id] = node_id


class OneOfThree(BrokerWithView):
    def _new_server(self, view=None, peers=None, durable_logs=None):
        server = super()._new_server(view, peers, durable_logs)
        self.moves = server.moves = ScriptedMoves(self.view)
        return server
