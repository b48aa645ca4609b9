"""A new API, route, action or page without a row fails by name."""

from __future__ import annotations

import pytest

from barnabas.broker import handlers
from barnabas.broker.api.dispatch import ROUTES
from barnabas.broker.console.actions.table import ACTIONS
from barnabas.broker.console.application import OPENAPI
from barnabas.broker.console.routes import LIVE
from barnabas.broker.console.routes import ROUTES as HTTP_ROUTES
from barnabas.broker.http.pages import pages
from barnabas.broker.http.site import SESSION
from barnabas.protocol.generate.schema import Struct
from barnabas.protocol.messages import ENTRIES
from tests.attack.scenarios.arrays import places
from tests.attack.shapes.apis import APIS
from tests.attack.shapes.building import route_of
from tests.attack.shapes.measure import FIXED, MOST
from tests.attack.shapes.routes import HTTP
from tests.protocol.schemas import SCHEMAS

assert handlers, "importing the package registers the routes"

PAGE = ("GET /", "GET /assets/{path}")


def test_every_api_has_a_row_and_every_row_an_api():
    assert sorted(APIS) == sorted(route.name for route in ROUTES)


def test_every_route_action_and_page_has_a_row():
    served = [f"{each.method} {each.template}" for each in (*HTTP_ROUTES, *ACTIONS)]
    served += [f"GET {path}" for path in (*pages(None), LIVE.template, OPENAPI)]
    served += [f"{method} {SESSION}" for method in ("POST", "DELETE")]
    assert sorted(HTTP) == sorted({*served, *PAGE})


@pytest.mark.parametrize("table", [APIS, HTTP], ids=["apis", "routes"])
def test_every_row_has_shapes_with_names_of_their_own(table):
    for key, row in table.items():
        names = [shape.name for shape in row]
        assert names, f"{key} has no shape"
        assert len(names) == len(set(names)), f"{key} has two shapes of the same name"


def test_limits_of_a_part_are_in_proportion():
    assert MOST.of_part(1) == MOST
    for most, fixed, of_half in zip(MOST, FIXED, MOST.of_part(0.5), strict=True):
        assert of_half == (most + fixed) / 2


@pytest.mark.parametrize("api", sorted(APIS))
def test_every_array_of_a_request_is_filled(api):
    newest = route_of(api).max_version
    paths = {each.path for each in places() if (each.api, each.version) == (api, newest)}
    assert bool(paths) == has_array(
        SCHEMAS[ENTRIES[route_of(api).key].module].sections["request"], newest
    )
    filled = [path for path in paths if any(f" {path}, " in shape.name for shape in APIS[api])]
    assert sorted(filled) == sorted(paths)


def has_array(within: Struct, version: int) -> bool:
    """Whether a request has an array in a version."""
    return any(
        version in each.versions
        and (each.is_array or bool(each.struct and has_array(each.struct, version)))
        for each in within.fields
    )
