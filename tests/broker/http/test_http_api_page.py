"""docs/http-api.md: generated, current and complete; its permissions are those of the port."""

from __future__ import annotations

from barnabas.broker.console.actions.table import ACTIONS
from barnabas.broker.console.routes import LIVE, ROUTES
from barnabas.broker.http.pages import pages
from barnabas.broker.security.web.guard import PROBES
from tests.site.http_api import NOTES, PAGE, main, page


def rows() -> list[tuple[str, str]]:
    """The method and path of each row."""
    table = [line.split(" | ") for line in page().splitlines() if "| `/" in line]
    return [(cells[0].removeprefix("| "), cells[1].strip("`")) for cells in table]


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run 'make docs-http-api'"


def test_each_route_has_one_row():
    found = rows()
    assert len(found) == len(set(found))
    expected = {("GET", route.template) for route in (*ROUTES, LIVE)}
    expected |= {(action.method, action.template) for action in ACTIONS}
    expected |= {("GET", path) for path in pages(None)}
    assert expected <= set(found)


def test_only_probes_need_no_permission_among_the_pages():
    part = page().split("## Read")[0]
    lines = [line for line in part.splitlines() if line.startswith("| GET | `/")]
    assert {line.split("`")[1] for line in lines if "| none |" in line} == PROBES


def test_notes_are_about_routes_that_exist():
    assert {f"/api/v1/{name}" for name in NOTES} <= {route.template for route in ROUTES}


def test_check_fails_for_an_old_page(tmp_path, monkeypatch, capsys):
    old = tmp_path / "http-api.md"
    old.write_text("old")
    monkeypatch.setattr("tests.site.http_api.PAGE", old)
    monkeypatch.setattr("sys.argv", ["http_api", "--check"])
    assert main() == 1
    assert "is not current: run 'make docs-http-api'" in capsys.readouterr().err
