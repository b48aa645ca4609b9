"""Errors of a cluster, and requests to several coordinators."""

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.cluster.requests import refused
from barnabas.spark_connector.errors import (
    Fenced,
    NotAllowed,
    SinkError,
    TransactionLost,
)
from barnabas.testing import Broker


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.PRODUCER_FENCED, Fenced),
        (ErrorCode.INVALID_PRODUCER_EPOCH, Fenced),
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionLost),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, NotAllowed),
        (ErrorCode.UNKNOWN_SERVER_ERROR, SinkError),
    ],
    ids=lambda each: each.name if isinstance(each, ErrorCode) else None,
)
def test_each_error_is_one_sentence(code, kind):
    error = refused("Doing this", code)
    assert type(error) is kind
    assert str(error).startswith("Doing this ")
    assert str(error).endswith(".")
    assert code.name in str(error)


@pytest.mark.parametrize("count", [1, 2, 3, 250])
def test_each_of_many_questions_gets_its_own_answer(count):
    """The requests use several connections at once, whose responses arrive at different times."""
    ids = [f"id-{number}" for number in range(count)]
    with (
        Broker() as broker,
        Cluster(broker.bootstrap_servers, client_id="test", timeout_ms=30_000) as cluster,
    ):
        for _ in range(2):
            answers = cluster.ask_coordinators(
                "Describing",
                DESCRIBE_TRANSACTIONS,
                {key: DescribeTransactionsRequest([key]) for key in ids},
                error_of=lambda _response: 0,
            )
            described = {
                key: answer.transaction_states[0].transactional_id
                for key, answer in answers.items()
            }
            assert described == {key: key for key in ids}
