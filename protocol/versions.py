"""Versions of requests to which this project's own clients hold on, and why."""

from __future__ import annotations

from typing import Final

PRODUCE_BY_NAME: Final = 12
"""The last version of Produce that names topics; later ones want ids."""
OFFSET_COMMIT_BY_NAME: Final = 9
"""The last version of OffsetCommit that names topics; later ones want ids."""
INIT_PRODUCER_ID_STABLE: Final = 5
"""The last version of InitProducerId that asks for nothing but a new epoch."""

PRODUCE_CLASSIC: Final = 11
"""The last version of Produce that adds nothing to a transaction."""
ADD_PARTITIONS_BY_CLIENTS: Final = 3
"""The last version of AddPartitionsToTxn that clients send."""
END_TXN_CLASSIC: Final = 4
"""The last version of EndTxn that leaves the producer its epoch."""
