"""Judge and inputs of examples/spark_ledger.py: each payment has two movements, both once."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

ACCOUNTS = 1000


class Record(Protocol):
    """The part of an input or an output that the judge reads."""

    @property
    def value(self) -> bytes | None:
        """JSON text of a payment or a movement."""


def inputs(number: int) -> tuple[str, str]:
    """Return the key and the value of a payment."""
    payer = number * 7919 % ACCOUNTS
    payee = (payer + 1 + number % (ACCOUNTS - 1)) % ACCOUNTS
    payment = {"id": number, "from": payer, "to": payee, "cents": 1 + number * 31 % 99_999}
    return str(payer), json.dumps(payment)


def judge(inputs: Sequence[Record], outputs: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each movement that is missing, or written too often."""
    due: Counter[tuple[int, int, int]] = Counter()
    for each in inputs:
        payment = json.loads(each.value or b"{}")
        due[payment["id"], payment["from"], -payment["cents"]] += 1
        due[payment["id"], payment["to"], payment["cents"]] += 1
    found: Counter[tuple[int, int, int]] = Counter()
    for each in outputs:
        movement = json.loads(each.value or b"{}")
        found[movement["payment"], movement["account"], movement["cents"]] += 1
    for number, account, cents in due - found:
        yield f"payment {number}: the movement of {cents} cents on account {account} is missing"
    for number, account, cents in found - due:
        yield f"payment {number}: {cents} cents on account {account} were written too often"
