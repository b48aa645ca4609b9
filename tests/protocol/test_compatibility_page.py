"""The page about compatibility with Apache Kafka, against the routes and Apache Kafka's jars."""

from __future__ import annotations

from tests.counterparts.jars import kafka_jars
from tests.protocol.kafka_definitions import read_definitions
from tests.site.compatibility import ABSENT, DIFFERENCES, PAGE, page, served


def kafkas() -> dict[str, tuple[int, str]]:
    """Return key and versions of each API of Apache Kafka's brokers."""
    return {
        name.removesuffix("Request"): (document["apiKey"], document["validVersions"])
        for name, document in read_definitions(kafka_jars()).items()
        if "broker" in document.get("listeners", ())
    }


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "run: make docs-compatibility"


def test_each_api_of_kafka_is_served_in_all_its_versions_or_listed_as_absent():
    versions = {
        route.name: (route.key, f"{route.min_version}-{route.max_version}".removesuffix("-0"))
        for route in served()
    }
    expected = kafkas()
    assert versions == {name: expected[name] for name in versions}
    assert {name: key for name, (key, _why) in ABSENT.items()} == {
        name: key for name, (key, _versions) in expected.items() if name not in versions
    }


def test_differences_are_those_of_served_apis():
    assert DIFFERENCES.keys() <= {route.name for route in served()}
