"""Functions of the console's modules: tables of arguments and results, in one page of a browser."""

from __future__ import annotations

import pytest

NOW = 1_000_000
MINUTE_MS = 60_000
EXACT = "9007199254740993"
"""More than JavaScript counts to: 2^53 + 1."""
CALLS = [
    ("parts/action.js", "figureOf", ("open_for_ms", 255_680), ["Open for", "4 min 15 s"]),
    ("parts/action.js", "figureOf", ("bytes", 18_915_131), ["Size", "18.9 MB"]),
    ("parts/action.js", "figureOf", ("records_at_most", 1200), ["Records", "at most 1,200"]),
    ("parts/action.js", "figureOf", ("offsets", EXACT), ["Offsets", "9,007,199,254,740,993"]),
    ("parts/action.js", "figureOf", ("mechanism", "SCRAM-SHA-512"), ["Mechanism", "SCRAM-SHA-512"]),
    (
        "parts/action.js",
        "figuresOf",
        ({"partitions": 1, "offsets_blocked": 2, "offsets_held_back": 2, "acls": 1, "rules": 1},),
        [["Partitions", "1"], ["Offsets blocked", "2"], ["ACLs", "1"]],
    ),
    ("parts/fields.js", "titled", ("before_offset",), "Before offset"),
    ("parts/list.js", "shownOf", (100, {"next": "x", "total": 1013}), "100 of 1,013 shown"),
    ("parts/list.js", "shownOf", (7, {"next": None, "total": 7}), "7 shown"),
    ("parts/list.js", "shownOf", (100, {"next": "x"}), "100 shown, there are more"),
    ("parts/past.js", "timeUntilFull", (None,), ""),
    (
        "parts/past.js",
        "timeUntilFull",
        (233 * MINUTE_MS,),
        "full in about 3 h 53 min at the device's present rate",
    ),
    ("screens/clients.js", "stateOf", ([],), "idle"),
    ("screens/clients.js", "stateOf", (["request", "quota"],), "busy, throttled"),
    (
        "parts/choices.js",
        "ofGroup",
        ([{"topic": "b", "partition": 10}, {"topic": "b", "partition": 2}],),
        {
            "topic": {"values": ["b"], "isClosed": False},
            "partition": {"values": ["2", "10"], "isClosed": False},
        },
    ),
    ("parts/missing.js", "isMissing", ({"error": "GROUP_ID_NOT_FOUND"},), True),
    ("parts/missing.js", "isMissing", ({"kafkaName": "UNKNOWN_TOPIC_OR_PARTITION"},), True),
    ("parts/missing.js", "isMissing", ({"error": "NOT_LEADER_OR_FOLLOWER"},), False),
    ("parts/missing.js", "isMissing", (None,), False),
]
WAITING = {"transactions": 0, "hanging": 0, "partitions": 0, "records": 0, "groups": 0}


def held_since(start_ms, *, hanging=False):
    """A partition whose first open transaction started at ``start_ms``."""
    known = {"start_time_ms": start_ms, "transactional_id": "t"}
    return {"transactions": [{"hanging": hanging, "transaction": known, "last_timestamp_ms": 0}]}


def rate_of(before, after, topic_id="a"):
    """Arguments of ``rateOf`` for two looks that are two seconds apart."""
    return {"topic_id": "a", "written": before}, {"topic_id": topic_id, "written": after}, 2000


CALLS += [
    # Short transactions, and partitions without a known one, would make the table flicker.
    ("screens/topic-lists.js", "isBlocked", ({"transactions": []}, NOW), False),
    ("screens/topic-lists.js", "isBlocked", (held_since(NOW - 500), NOW), False),
    ("screens/topic-lists.js", "isBlocked", (held_since(NOW - 5000), NOW), True),
    ("screens/topic-lists.js", "isBlocked", (held_since(NOW, hanging=True), NOW), True),
    ("screens/topics.js", "rateOf", rate_of(10, 30), 10),
    ("screens/topics.js", "rateOf", rate_of(30, 30), 0),
    ("screens/topics.js", "rateOf", rate_of(30, 0), None),
    ("screens/topics.js", "rateOf", rate_of(10, 30, topic_id="b"), None),
    ("parts/trouble.js", "troublesOf", ({"waiting": WAITING, "lagging": []},), []),
    (
        "parts/trouble.js",
        "troublesOf",
        (
            {
                "waiting": {**WAITING, "transactions": 7, "records": 1005, "groups": 1},
                "lagging": [],
            },
        ),
        [
            {
                "kind": "warn",
                "words": "7 transactions block 1,005 records; 1 group affected",
                "href": "/transactions",
            }
        ],
    ),
]


@pytest.fixture
def call(page, broker):
    """Call a function that a module of the page exports."""
    page.goto(broker.url)

    def called(module, name, given):
        script = """async ([module, name, given]) => {
            const main = document.querySelector("script[type=module]").src;
            return (await import(new URL(module, main)))[name](...given);
        }"""
        return page.evaluate(script, [module, name, list(given)])

    return called


def test_modules_compute_what_their_tables_say(call):
    for module, name, given, expected in CALLS:
        assert call(module, name, given) == expected, (module, name, given)
