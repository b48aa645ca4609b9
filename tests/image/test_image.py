"""The content of the image, and its labels and settings."""

from __future__ import annotations

import platform
import re

from barnabas.broker.version import __version__
from tests.conftest import SAID

LARGEST_BYTES = 215_000_000
"""The driver of PostgreSQL brings libraries of its own, OpenSSL and Kerberos among them: 15 MB."""

OCI_KEYS = {
    "authors",
    "base.name",
    "created",
    "description",
    "documentation",
    "licenses",
    "ref.name",
    "revision",
    "source",
    "title",
    "url",
    "vendor",
    "version",
}
"""The keys of the OCI image specification; a digest of the base is not known before the build."""


def test_its_size(image, request):
    request.node.user_properties.append((SAID, f"the image has {image.size_bytes / 1e6:.0f} MB"))
    assert image.size_bytes < LARGEST_BYTES


def test_its_configuration(image):
    config = image.config
    assert config["User"] == "1000"
    assert set(config["ExposedPorts"]) == {"9092/tcp", "9644/tcp", "19092/tcp"}
    assert set(config["Volumes"]) == {
        "/var/lib/kafka/data",
        "/etc/kafka/secrets",
        "/mnt/shared/config",
    }
    assert config["Cmd"] == ["/etc/kafka/docker/run"]
    assert config["Healthcheck"]["Test"] == ["CMD", "barnabas", "ready"]
    assert config["StopSignal"] == "SIGTERM"
    assert image.environment["MALLOC_MMAP_THRESHOLD_"] == "268435456"
    assert image.environment["MALLOC_TRIM_THRESHOLD_"] == "536870912"
    assert image.environment["PYTHONUNBUFFERED"] == "1"
    prefix = "org.opencontainers.image."
    labels = config["Labels"]
    assert {each.removeprefix(prefix) for each in labels if each.startswith(prefix)} == OCI_KEYS
    assert labels[prefix + "title"] == "Barnabas"
    assert labels[prefix + "version"] == __version__
    assert labels[prefix + "licenses"] == "Apache-2.0"
    assert re.fullmatch(r"[0-9a-f]{40}|unknown", labels[prefix + "revision"])
    assert labels[prefix + "source"] == "unknown"  # Unless docker/build receives SOURCE.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", labels[prefix + "created"])


def test_command_of_the_image_prints_the_version_and_the_commit(container, image):
    shell = container(command=["sleep", "60"])
    revision = image.config["Labels"]["org.opencontainers.image.revision"]
    printed = shell.execute("barnabas", "--version").stdout
    assert printed == f"barnabas {__version__} (compiled, commit {revision})\n"


def test_nothing_of_this_machine_or_of_the_build_is_left(container, image):
    shell = container(command=["sleep", "60"])
    root = shell.root
    assert not (root / "etc/pip.conf").exists()
    assert not (root / "run/secrets").exists()
    assert not list((root / "tmp").iterdir())
    assert not list((root / "var/lib/apt/lists").iterdir())
    said = shell.execute("sh", "-c", "command -v gcc cc strip pip git").stdout.split()
    # python:slim has pip; the image built here has not.
    assert said == []
    environment = shell.execute("env").stdout
    assert not re.search(r"^(PIP_|SSL_|.*proxy)", environment, re.IGNORECASE | re.MULTILINE)
    assert "secrets" not in "".join(image.config["Env"])


def test_who_runs_and_what_may_be_written(container):
    shell = container(command=["sleep", "60"])
    assert shell.execute("id", "-un").stdout == "appuser\n"
    writable = "/var/lib/kafka/data /etc/kafka/docker /etc/confluent/docker /opt/kafka /tmp"
    for path in writable.split():
        assert shell.execute("test", "-w", path).returncode == 0, path
    for path in ("/opt/barnabas", "/usr/local/bin", "/etc", "/etc/passwd"):
        assert shell.execute("test", "-w", path).returncode == 1, path
    assert shell.execute("bash", "-c", "echo $BASH").stdout.endswith("/bash\n")


def test_everything_is_compiled(container):
    shell = container(command=["sleep", "60"])
    loose = shell.execute(
        "python3", "-c",
        "import glob, importlib.util as u; "
        "print([p for p in glob.glob('/opt/barnabas/lib/**/*.py', recursive=True) "
        "if not glob.glob(u.cache_from_source(p))])",
    )  # fmt: skip
    assert loose.stdout == "[]\n"
    machine = shell.execute("/opt/barnabas/bin/python3", "-c", "import os; print(os.uname()[4])")
    assert machine.stdout.strip() == platform.machine()


def test_the_stripped_libraries_still_work(container):
    shell = container(command=["sleep", "60"])
    code = """if True:
        import cramjam, crc32c, lz4.frame, psycopg, uvloop, zstandard
        assert psycopg.pq.__impl__ == "binary"
        data = b"barnabas" * 1000
        assert bytes(cramjam.snappy.decompress_raw(cramjam.snappy.compress_raw(data))) == data
        assert lz4.frame.decompress(lz4.frame.compress(data)) == data
        assert zstandard.decompress(zstandard.compress(data)) == data
        assert crc32c.crc32c(b"123456789") == 0xE3069283
        loop = uvloop.new_event_loop()
        loop.run_until_complete(loop.getaddrinfo("localhost", 9092))
        loop.close()
    """
    result = shell.execute("/opt/barnabas/bin/python3", "-c", code)
    assert result.returncode == 0, result.stderr
