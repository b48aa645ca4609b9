"""The table of Kafka APIs: the worst requests of each."""

from __future__ import annotations

from tests.attack.shapes.apis_data import DATA
from tests.attack.shapes.apis_groups import GROUPS
from tests.attack.shapes.apis_others import OTHERS
from tests.attack.shapes.apis_transactions import TRANSACTIONS
from tests.attack.shapes.building import Row, tagged

_ROWS: dict[str, Row] = {**DATA, **GROUPS, **TRANSACTIONS, **OTHERS}
APIS: dict[str, Row] = {api: [*row, *tagged(api)] for api, row in _ROWS.items()}
