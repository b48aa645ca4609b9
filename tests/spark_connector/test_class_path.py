"""The connector's jars beside a user's packages and jars."""

import zipfile

import pytest

from barnabas.spark_connector.refusals import WrongUse
from barnabas.spark_connector.session import class_path
from barnabas.spark_connector.session.class_path import EXCLUDES, JARS, PACKAGES, with_connector
from barnabas.spark_connector.session.jars import SPARK_KAFKA_JARS

AVRO = "org.apache.spark:spark-avro_2.13:4.2.0"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
PINNED = [f"{jar.group}:{jar.artifact}" for jar in SPARK_KAFKA_JARS]
FETCHED = [f"/cache/{jar.file_name}" for jar in SPARK_KAFKA_JARS]


@pytest.fixture(autouse=True)
def fetched(monkeypatch, tmp_path):
    """Replace the pinned jars by a stand-in; return the list of calls for them."""
    asked = []

    def jars():
        asked.append("jars")
        return [tmp_path.__class__(path) for path in FETCHED]

    monkeypatch.setattr(class_path, "jars_of_installed_spark", jars)
    return asked


def jar(path, *names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    return str(path)


def with_packages(*given, **settings):
    return class_path.with_packages(settings, given)


def test_packages_are_listed_with_commas_or_one_by_one():
    assert with_packages() == {}
    assert with_packages(f"{AVRO}, a:b:1", "c:d:2") == {PACKAGES: f"{AVRO},a:b:1,c:d:2"}
    settings = {PACKAGES: "x:y:1", "other": "z"}
    assert class_path.with_packages(settings, [AVRO]) == {PACKAGES: f"x:y:1,{AVRO}", "other": "z"}


@pytest.mark.parametrize("wrong", ["avro", "a:b", "a:b:c:d", "a b:c:d", "a/b:c:d", f"{AVRO},x"])
def test_invalid_package_is_refused(wrong):
    with pytest.raises(WrongUse, match=r"--packages .* is not group:artifact:version, as in org"):
        with_packages(wrong)


def test_the_connector_alone():
    assert with_connector({}) == {JARS: ",".join(FETCHED)}


def test_the_connector_beside_packages_and_without_what_they_bring_of_it():
    found = with_connector({PACKAGES: AVRO, EXCLUDES: "a:b"})
    assert found == {
        PACKAGES: AVRO,
        JARS: ",".join(FETCHED),
        EXCLUDES: ",".join(["a:b", *PINNED]),
    }


def test_another_version_of_a_pinned_jar_takes_its_place():
    name = "org.apache.kafka:kafka-clients"
    found = with_connector({PACKAGES: f"{name}:4.0.0"})
    rest = [path for path in FETCHED if "kafka-clients" not in path]
    assert found[JARS] == ",".join(rest)
    assert found[EXCLUDES] == ",".join(each for each in PINNED if each != name)


@pytest.mark.parametrize(
    "name", [CONNECTOR, CONNECTOR.replace(":", "/", 1), f"{AVRO}, {CONNECTOR}"]
)
def test_nothing_is_fetched_where_a_package_is_the_connector(fetched, name):
    assert with_connector({PACKAGES: name}) == {PACKAGES: name}
    assert fetched == []


def test_jars_of_a_user_are_added_to(tmp_path):
    own = jar(tmp_path / "own.jar", "my/Function.class")
    assert with_connector({JARS: own})[JARS] == ",".join([own, *FETCHED])
    every = f"{tmp_path}/*.jar"
    assert with_connector({JARS: every})[JARS] == ",".join([every, *FETCHED])
    elsewhere = "hdfs://host/own.jar"
    assert with_connector({JARS: elsewhere})[JARS] == ",".join([elsewhere, *FETCHED])


def test_nothing_is_fetched_where_a_jar_has_the_connector(fetched, tmp_path):
    provider = "org/apache/spark/sql/kafka010/KafkaSourceProvider.class"
    whole = jar(tmp_path / "whole.jar", "my/Function.class", provider)
    for jars in (whole, f"file://{whole}", f"{tmp_path}/w*.jar"):
        assert with_connector({JARS: jars}) == {JARS: jars}
    named = f"s3a://bucket/{SPARK_KAFKA_JARS[0].file_name}"
    assert with_connector({JARS: named}) == {JARS: named}
    assert fetched == []


def test_nothing_is_fetched_where_pyspark_has_the_connector(fetched, monkeypatch):
    monkeypatch.setattr("barnabas.spark_connector.session.class_path.has_connector", lambda: True)
    assert with_connector({PACKAGES: "a:b:1"}) == {PACKAGES: "a:b:1"}
    assert fetched == []


def test_jars_that_are_not_there(tmp_path):
    with pytest.raises(WrongUse, match=r"names /nothing\.jar, but there is no such file"):
        with_connector({JARS: f"/nothing.jar,{tmp_path}"})
    (tmp_path / "text.jar").write_text("text")
    with pytest.raises(WrongUse, match=r"names .*/text\.jar, which is no jar: File is not a zip"):
        with_connector({JARS: str(tmp_path / "text.jar")})
