"""Judge and inputs of examples/spark_enrichment.py: each order once, with the right country."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

COUNTRIES = ("AT", "CH", "DE", "FR", "IT")
CUSTOMERS = 100


class Record(Protocol):
    """The part of an input or an output that the judge reads."""

    @property
    def value(self) -> bytes | None:
        """JSON text of an order, at the output with its country."""


def country(customer: int) -> str:
    """Return the country of a customer."""
    return COUNTRIES[customer % len(COUNTRIES)]


TABLES = {
    "customers": [
        (str(number), json.dumps({"customer": number, "country": country(number)}))
        for number in range(CUSTOMERS)
    ]
}


def inputs(number: int) -> tuple[str, str]:
    """Return the key and the value of an order."""
    order = {"order": number, "customer": number * 271 % CUSTOMERS, "cents": 100 + number % 900}
    return str(number), json.dumps(order)


def judge(inputs: Sequence[Record], outputs: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each order that is missing, wrong, or written too often."""
    written = Counter(_fields(json.loads(each.value or b"{}")) for each in outputs)
    placed = [json.loads(each.value or b"{}") for each in inputs]
    due = Counter(_fields(each | {"country": country(each["customer"])}) for each in placed)
    for number, customer, name, _ in due - written:
        yield f"order {number} of customer {customer} in {name} is missing"
    for number, customer, name, _ in written - due:
        yield f"order {number} of customer {customer} in {name} is wrong, or written too often"


def _fields(order: dict[str, object]) -> tuple[object, object, object, object]:
    return order["order"], order["customer"], order.get("country"), order["cents"]
