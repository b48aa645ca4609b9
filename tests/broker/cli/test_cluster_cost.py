"""The bill of a cluster: requests, objects and rows at prices that can be given."""

import pytest

from barnabas.broker.cli.directory.cluster_cost import PRICES, _document, _prices, bill
from barnabas.broker.cli.errors import CommandError
from barnabas.storage.objects.object_rows import Held, Requests, Usage

USAGE = Usage(
    seconds=7200.0,
    requests={"put": Requests(20_000, 10**9), "get": Requests(1_000_000, 5 * 10**9)},
    objects={"wal": Held(3, 10**9), "seg": Held(2, 99 * 10**9)},
    waiting_keys=4,
    rows=Held(7, 700),
    index_bytes=2 * 10**9,
)


def test_requests_cost_by_the_million_and_stores_by_the_gigabyte():
    lines = {each.name: each for each in bill(USAGE, PRICES)}
    assert lines["put"][1:] == (20_000, 10**9, pytest.approx(0.1), pytest.approx(36.5))
    assert lines["get"].usd == pytest.approx(0.4)
    assert lines["objects of flushes"][1:] == (3, 10**9, None, pytest.approx(0.023))
    assert lines["segments"].usd_a_month == pytest.approx(2.277)
    assert lines["payloads in PostgreSQL"][1:] == (7, 700, None, 0.0)
    assert lines["PostgreSQL's database"].usd_a_month == 0.0
    assert "list" not in lines


def test_each_price_can_be_given():
    prices = _prices(["put=7.5", "database=0.1", "put=8"])
    assert prices == PRICES | {"put": 8.0, "database": 0.1}
    lines = {each.name: each for each in bill(USAGE, prices)}
    assert lines["put"].usd == pytest.approx(0.16)
    assert lines["PostgreSQL's database"].usd_a_month == pytest.approx(0.2)


@pytest.mark.parametrize("given", ["putt=1", "put", "put=x", "put=-1", "put=inf", "put=nan"])
def test_price_that_is_none_is_refused(given):
    with pytest.raises(CommandError, match=f"--price {given}: "):
        _prices([given])


def test_cluster_without_requests_costs_what_it_stores():
    idle = Usage(0.0, {}, {}, 0, Held(0, 0), 0)
    assert sum(each.usd_a_month for each in bill(idle, PRICES)) == 0


def test_document_has_the_prices_and_each_line():
    lines = [*bill(USAGE, PRICES)]
    document = _document("c", USAGE, PRICES, lines, 1.5)
    assert document["prices_usd"] == PRICES
    assert document["hours"] == 2.0
    assert [each["name"] for each in document["lines"]] == [each.name for each in lines]
    assert (document["waiting_objects"], document["usd_a_month"]) == (4, 1.5)
