"""The table of HTTP routes: the worst requests of each route, action and page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from barnabas.broker.console.actions.table import ACTIONS
from barnabas.broker.console.records.scan import ROWS_MOST
from barnabas.broker.console.routes import LIVE
from tests.attack.shapes.building import REGEX, Row
from tests.attack.shapes.http_building import (
    BODY_BYTES,
    BODY_TEXT_CHARACTERS,
    ODD_BODIES,
    asked,
    gets,
    of_action,
    of_route,
    request,
    sends,
    target_of,
    unread_get,
)
from tests.attack.shapes.shape import Shape
from tests.attack.shapes.world import (
    BATCHES,
    HUGE,
    JSON_VALUES,
    RECORDS,
    TINY,
    TINY_RECORDS,
    WIDE,
    WIDE_GROUP,
)

TOPIC = "/api/v1/topics/{topic}"
SOME_RECORDS = f"{TOPIC}/records"
EXPORT = f"{SOME_RECORDS}/export"
RECORD = f"{TOPIC}/partitions/{{partition}}/records/{{offset}}"
SESSION = "/api/v1/session"
FILTER_CHARACTERS = 1_020
LISTS = (
    "GET /api/v1/overview",
    "GET /api/v1/topics",
    "GET /api/v1/topics/{topic}",
    "GET /api/v1/groups",
    "GET /api/v1/transactions",
    "GET /api/v1/blocked-partitions",
    "GET /api/v1/holders",
    "GET /api/v1/session",
    "GET /api/v1/actions",
    "GET /api/v1/allowed",
    "GET /api/v1/storage",
    "GET /api/v1/settings",
    "GET /api/v1/history",
    "GET /api/v1/groups/{group}/history",
    "GET /api/v1/transaction-events",
    "GET /api/v1/ended-transactions",
    "GET /api/v1/clients",
    "GET /api/v1/readers",
    "GET /api/v1/events",
    "GET /api/v1/pipelines",
    "GET /api/v1/spark-queries",
    "GET /api/v1/topics/{topic}/producers",
    "GET /api/v1/topics/{topic}/groups",
    "GET /api/v1/jobs",
    "GET /api/v1/jobs/{transactional_id}",
    "GET /api/v1/users",
    "GET /api/v1/acls",
    "GET /api/v1/quotas",
)
"""Routes that have nothing but their parameters, and what exists."""
FORMS = (
    "POST /api/v1/topics",
    "PATCH /api/v1/topics/{topic}/settings",
    "POST /api/v1/topics/{topic}/partitions",
    "DELETE /api/v1/jobs/{transactional_id}",
    "DELETE /api/v1/topics/{topic}/records",
    "DELETE /api/v1/topics/{topic}",
    "POST /api/v1/groups/{group}/reset-offsets",
    "DELETE /api/v1/groups/{group}/offsets",
    "DELETE /api/v1/groups/{group}",
    "POST /api/v1/transactions/{transactional_id}/abort",
    "POST /api/v1/topics/{topic}/abort",
    "PATCH /api/v1/settings",
    "DELETE /api/v1/clients/{address}",
    "POST /api/v1/users",
    "DELETE /api/v1/users/{user}",
    "POST /api/v1/acls",
    "DELETE /api/v1/acls/{principal}",
    "POST /api/v1/quotas",
)
"""Actions that have nothing but their fields."""
PAGES = ("/livez", "/readyz", "/health", "/healthz", "/metrics", "/config")


def filters() -> dict[str, str]:
    """Return the dearest filters of records, by what they are."""
    most = FILTER_CHARACTERS
    return {
        "repetitions": "/" + REGEX * (most // len(REGEX)) + "/",
        "classes of Unicode": "/" + r"\pL{0,500}" * (most // 10) + "/",
        "folded case": "/(?i)" + "[a-zß-ÿ]{0,200}" * (most // 20) + "/",
        "sixteen expressions": " ".join(["/.*x.*y/"] * 16),
        "sixteen heavy expressions": " ".join(["/" + REGEX * 6 + "/"] * 16),
        "words": " ".join(["e"] * 16),
        "more words than allowed": "a " * (most // 2),
        "a path into JSON": "value" + ".a" * (most // 3) + "=1",
        "a number": "value.id=5",
        "an exponent": "value.id=1E+99999999999999999999",
        "digits": "value.id=" + "9" * 990,
    }


def _searches(template: str) -> Iterable[Shape]:
    written = ",".join(map(str, (BATCHES, JSON_VALUES)))
    for name, text in filters().items():
        query = {"filter": text, "from": "beginning", "limit": str(ROWS_MOST), "partition": written}
        yield gets(f"a filter: {name}", template, query)


def _records() -> dict[str, Row]:
    everything = {"from": "beginning", "limit": str(ROWS_MOST)}
    wide = {"topic": WIDE}
    huge = {"partition": str(HUGE)}
    values = {"partition": str(JSON_VALUES)}
    sought = {"from": "beginning", "limit": str(ROWS_MOST), "filter": "/zz.*zz/ qq"}
    few = {"partition": str(BATCHES), "limit": "100"}
    huge_export = target_of(EXPORT, {**everything, **huge})
    huge_raw = target_of(f"{RECORD}/raw", {}, **huge)
    stream = {"Accept": "text/event-stream"}
    followed = f"{SOME_RECORDS}?from=beginning&follow=true".replace("{topic}", RECORDS)
    return {
        f"GET {SOME_RECORDS}": [
            gets("10,000 partitions", SOME_RECORDS, everything, **wide),
            gets("values of 60 MB", SOME_RECORDS, {**everything, **huge}),
            gets("odd JSON", SOME_RECORDS, {**everything, **values}),
            replace(
                gets(
                    f"twice {TINY_RECORDS:,} tiny records",
                    SOME_RECORDS,
                    {**sought, "partition": str(TINY)},
                ),
                is_part=True,
            ),
            gets("a filter of values of 60 MB", SOME_RECORDS, {**sought, **huge}),
            asked("a stream, unread", request("GET", followed, headers=stream), is_read=False),
            *_searches(SOME_RECORDS),
            *of_route(f"GET {SOME_RECORDS}", **few),
        ],
        f"GET {EXPORT}": [
            gets("values of 60 MB", EXPORT, {**everything, **huge}),
            asked("values of 60 MB, unread", request("GET", huge_export), is_read=False),
            *_searches(EXPORT),
            *of_route(f"GET {EXPORT}", **few),
        ],
        f"GET {RECORD}": [
            gets("a value of 60 MB", RECORD, {}, partition=str(HUGE)),
            *(_formats(partition, offset) for partition, offset in ((HUGE, 0), (JSON_VALUES, 2))),
            *of_route(f"GET {RECORD}"),
        ],
        f"GET {RECORD}/raw": [
            gets("a value of 60 MB", f"{RECORD}/raw", {}, partition=str(HUGE)),
            asked("a value of 60 MB, unread", request("GET", huge_raw), is_read=False),
            *of_route(f"GET {RECORD}/raw"),
        ],
        "GET /api/v1/topics/{topic}/partitions": [
            gets("10,000 partitions", f"{TOPIC}/partitions", {"limit": "1000"}, topic=WIDE),
            *of_route("GET /api/v1/topics/{topic}/partitions"),
        ],
        "GET /api/v1/groups/{group}": [
            gets("10,000 offsets", "/api/v1/groups/{group}", {"limit": "1000"}, group=WIDE_GROUP),
            *of_route("GET /api/v1/groups/{group}"),
        ],
        "GET /api/v1/transactions/{transactional_id}": [
            gets("10,000 partitions", "/api/v1/transactions/{transactional_id}", {"limit": "1000"}),
            *of_route("GET /api/v1/transactions/{transactional_id}"),
        ],
    }


def _formats(partition: int, offset: int) -> Shape:
    names = ("text", "json", "hex", "base64", "avro", "protobuf")
    queries = ({"value_format": each} for each in names)
    where = {"partition": str(partition), "offset": str(offset)}
    return gets(f"every format of record {partition}-{offset}", RECORD, *queries, **where)


def _produce() -> Row:
    action = next(each for each in ACTIONS if each.name == "records.produce")
    most = BODY_TEXT_CHARACTERS
    formats = next(each.choices for each in action.fields if each.name == "value_format")
    for name, value in (
        ("digits", "7" * most),
        ("deep JSON", "[" * (most // 2) + "]" * (most // 2)),
    ):
        for each in formats:
            values = {"value": value, "value_format": each}
            yield sends(f"{name} as {each}, dry", action, values)
            yield sends(f"{name} as {each}", action, values, is_dry=False)
    yield from of_action(f"POST {SOME_RECORDS}")


def _replay() -> Row:
    action = next(each for each in ACTIONS if each.name == "records.replay")
    most = BODY_TEXT_CHARACTERS
    texts = {
        "120,000 expressions": "/abc/ " * 120_000,
        "500,000 words": "a " * 500_000,
        "one expression of 1 MB": "/" + "a" * (most - 10) + "/",
        "an exponent": "value.id=1E+99999999999999999999",
    }
    for name, text in texts.items():
        values = {"target": RECORDS, "filter": text, "once": name[:20]}
        yield sends(f"a filter of {name}, dry", action, values)
        yield sends(f"a filter of {name}", action, values, is_dry=False)
    yield from of_action("POST /api/v1/jobs")


def _session(name: str, password: str) -> bytes:
    body = json.dumps({"user": name, "password": password}).encode()
    return request("POST", SESSION, body[:BODY_BYTES], user="")


def _bodies(method: str) -> list[bytes]:
    return [request(method, SESSION, body, user="") for body in ODD_BODIES]


def _logins() -> dict[str, Row]:
    most = BODY_BYTES - 100
    return {
        f"POST {SESSION}": [
            asked("a long password", _session("ordinary", "x" * most)),
            asked("a long user", _session("x" * most, "secret")),
            asked("half a character", _session("ordinary", "\ud800")),
            asked("long texts", _session("x" * 4000, "y" * 4000)),
            Shape("odd bodies", lambda _world: _bodies("POST")),
        ],
        f"DELETE {SESSION}": [
            Shape("odd bodies", lambda _world: _bodies("DELETE")),
            asked(
                "many cookies",
                request("DELETE", SESSION, headers={"Cookie": "a=b;" * 1_900}, user=""),
            ),
        ],
    }


def _pages() -> dict[str, Row]:
    watch = "watch=" + ",".join(["overview", "transactions", f"topic:{WIDE}"] * 20)
    rows: dict[str, Row] = {f"GET {page}": [gets("as it is", page, {})] for page in PAGES}
    live = request("GET", f"{LIVE.template}?{watch}")
    return rows | {
        f"GET {LIVE.template}": [
            asked("much watched, unread", live, is_read=False),
            gets("the longest", LIVE.template, {"watch": "topic:" + "%" * 1_300}),
        ],
        "GET /api/openapi.json": [
            gets("as it is", "/api/openapi.json", {}),
            unread_get("/api/openapi.json"),
        ],
        "GET /": [gets("as it is", "/", {})],
        "GET /assets/{path}": [
            gets("as it is", "/assets/main.js", {}),
            gets("many steps", "/assets/" + "a/" * 1_900, {}),
            unread_get("/assets/main.js"),
        ],
    }


HTTP: dict[str, Row] = {
    **{key: of_route(key) for key in LISTS},
    **{key: of_action(key) for key in FORMS},
    **_records(),
    f"POST {SOME_RECORDS}": [*_produce()],
    "POST /api/v1/jobs": [*_replay()],
    **_logins(),
    **_pages(),
}
