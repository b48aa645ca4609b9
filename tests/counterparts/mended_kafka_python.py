"""kafka-python without a fault of its own that any broker's death brings out.

kafka-python 3.0.12 drops a transaction's next request where its coordinator refuses the connection
for it: `await_ready` raises, where what calls it (`Sender._maybe_send_pending_request`) tries a
request again only if no node was found. It finds the new coordinator and asks it nothing, ever.
Whether it meets that depends on who coordinates; Apache Kafka 4.3 that is killed and started again
while such a producer rests hangs it in the same way.
"""

from __future__ import annotations

import time

from kafka.errors import KafkaConnectionError
from kafka.net.compat import KafkaNetClient

PAUSE_S = 0.02
"""The pause before the next search for the coordinator; the library itself makes none."""


class PatientClient(KafkaNetClient):
    """The client for `KafkaProducer(kafka_client=PatientClient)`."""

    def await_ready(self, node_id: int | str, timeout_ms: float = 30_000) -> bool:
        """Return False if the connection to a node failed."""
        try:
            return bool(super().await_ready(node_id, timeout_ms))
        except KafkaConnectionError:
            time.sleep(PAUSE_S)
            return False
