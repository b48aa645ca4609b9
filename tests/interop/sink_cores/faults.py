"""Settings of the brokers for the Spark sinks' tests, and the faults that the tests inject."""

from __future__ import annotations

from barnabas.broker.client.connection import Connection
from barnabas.broker.client.errors import Unreachable
from barnabas.spark_connector.cluster.requests import Identity, end_all
from barnabas.spark_connector.errors import BrokerUnreachable
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.ledger.sweep import describe
from tests.interop.spark_sink import PARTITIONS, PLACES, check_all_is_settled, restart_after_crash

CLASSIC = {"barnabas.transaction.version": "1"}
"""Settings without KIP-890 and KIP-939."""
PINNING = {"transaction.two.phase.commit.enable": "true"}


def lose_answers(monkeypatch, api, count):
    """Break the connection after the broker has completed a request, ``count`` times."""
    left = [count]
    receive = Connection.receive

    def lossy(self, asked):
        answer = receive(self, asked)
        if asked is api and left[0]:
            left[0] -= 1
            self.close()
            raise Unreachable("lost on purpose")
        return answer

    monkeypatch.setattr(Connection, "receive", lossy)
    return left


def crash_at_every_step(broker, query, monkeypatch):
    batches = 0
    for place in PLACES[query.kind]:
        batches += 2
        query.run(batches - 2)
        if place in {"C1", "C2-middle", "P1-fenced"}:
            query.stop()  # These are passed at a start only.
        restart_after_crash(monkeypatch, query, place, batches - 1)
        query.run(batches - 1)
    check_all_is_settled(broker, query, batches)


def abort_by_hand(query, chosen):
    """Do what an operator may do, or a timeout where transactions are not pinned."""
    with query.connected() as cluster:
        entry = Ledger(cluster, query.options.ledger_topic).read(
            query.options.sink_id, query.query_id
        )
        identities = describe(cluster, [each.transactional_id for each in entry.transactions])
        assert len(identities) == PARTITIONS
        picked = sorted(identities)[chosen]
        end_all(cluster, {key: Identity(*identities[key]) for key in picked}, commit=False)


def lose_decision(monkeypatch, *, arrives):
    """Lose the response of a decision, or without ``arrives`` also its request."""

    def unanswered(*asked, **how):
        if arrives:
            end_all(*asked, **how)
        raise BrokerUnreachable("on purpose")

    monkeypatch.setattr("barnabas.spark_connector.cluster.producer.end_all", unanswered)
