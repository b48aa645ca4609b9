"""Connections of librdkafka that wait for a group coordinator which has left the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.api.client_software import is_librdkafka
from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN

if TYPE_CHECKING:
    from barnabas.broker.api.client_seen import ClientSeen

OFFSETS_AWAITED_S: Final = 4.0
"""Time limit for the next request of librdkafka after AddOffsetsToTxn, after brokers joined or
left. It is less than the interval of two sweeps, so that the second sweep after the request closes
the connection."""


def has_stale_coordinator(silent_s: float, last_api: str, seen: ClientSeen) -> bool:
    """Return whether the client might wait for a coordinator that is in no Metadata response.

    librdkafka (2.10 to 2.16) remembers the coordinator of a group for 15 minutes. Once that
    broker is in no Metadata response any more, a transaction whose AddOffsetsToTxn succeeded
    waits for a connection there, and looks for another coordinator only when any of its
    connections opens or closes. This one has no other use before EndTxn.
    """
    return (
        silent_s >= OFFSETS_AWAITED_S
        and last_api == ADD_OFFSETS_TO_TXN.name
        and is_librdkafka(seen)
    )
