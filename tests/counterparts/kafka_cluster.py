"""Apache Kafka 4.3.0 as three nodes, each broker and controller: three copies of everything."""

from __future__ import annotations

import base64
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests.counterparts.apache_kafka import ApacheKafkaAsItComes
from tests.counterparts.broker_process import HOST

NODES = 3
COPIES = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
_NODE_ID = re.compile(r"^node\.id=.*$", re.MULTILINE)
_DIRECTORY_ID = re.compile(r"^directory\.id=.*$", re.MULTILINE)


class KafkaNode(ApacheKafkaAsItComes):
    """One of them."""

    heap = "512m"

    def __init__(self, node_id: int) -> None:
        super().__init__()
        self.node_id = node_id
        self.overrides |= {"node.id": str(node_id)} | COPIES

    @property
    def voter(self) -> str:
        """The name of this node as a controller, as the other nodes use it."""
        return f"{self.node_id}@{HOST}:{self._controller_port}"

    def prepare(self) -> None:
        """Make its directory, which has the ids of this node."""
        super().prepare()
        path = self.data_directory / "meta.properties"
        own_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        text = _NODE_ID.sub(f"node.id={self.node_id}", path.read_text())
        path.write_text(_DIRECTORY_ID.sub(f"directory.id={own_id}", text))


class KafkaNodes:
    """`with KafkaNodes() as nodes:` three that answer."""

    def __init__(self) -> None:
        self.brokers = [KafkaNode(number) for number in range(1, NODES + 1)]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start them together: one alone has no quorum."""
        voters = ",".join(each.voter for each in self.brokers)
        with ExitStack() as stack:
            for each in self.brokers:
                stack.callback(each.remove)
                each.overrides["controller.quorum.voters"] = voters
                each.prepare()
            with ThreadPoolExecutor(NODES) as threads:
                list(threads.map(KafkaNode.start, self.brokers))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill them, and remove what they kept."""
        self._stack.close()
