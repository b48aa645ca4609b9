"""A ledger: every transfer becomes two movements, out of one account and into another.

    python -m examples.spark_data payments --count 100000
    python -m barnabas.spark run examples/spark_ledger.py --once

All movements together are 0, however often the pipeline, its workers or the broker are killed: a
movement that was lost or written twice would show at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.spark import Pipeline, Sink, Source, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JUDGE = "proving/ledger_judge.py"  # of `barnabas prove --spark examples/spark_ledger.py`
PAYMENT = "id long, `from` int, `to` int, cents long"


def movements(payments: DataFrame) -> DataFrame:
    """Return two rows for each payment; the account is the key, so each account has its order."""
    return (
        payments.selectExpr(f"from_json(cast(value as string), '{PAYMENT}') as payment")
        .selectExpr(
            "payment.id as payment",
            "explode(array(struct(payment.`from` as account, -payment.cents as cents),"
            " struct(payment.`to` as account, payment.cents as cents))) as movement",
        )
        .selectExpr(
            "cast(movement.account as string) as key",
            "to_json(struct(payment, movement.account, movement.cents)) as value",
        )
    )


pipeline = Pipeline(
    source=Source(topic="payments", options={"maxOffsetsPerTrigger": 200_000}),
    transform=movements,
    sink=Sink(sink_id="ledger", topic="movements"),
)

if __name__ == "__main__":
    run(pipeline)
