"""The scripts of docker/compose.cluster.yaml make two servers and a role that brokers can use.

They run as in PostgreSQL's image, whose own entry script is played by a few lines here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from barnabas.storage.postgresql.metastore import PostgreSqlMetaStore
from barnabas.storage.postgresql.postgresql_log_index import PostgreSqlLogIndex
from tests.counterparts.postgresql import postgresql
from tests.counterparts.postgresql_servers import HOST, own
from tests.counterparts.probe import free_port
from tests.waiting import wait_until

DOCKER = Path(__file__).parents[2] / "docker"
ENTRY = '#!/bin/sh\nexec "$@"\n'
QUICKLY = ("-c", "shared_buffers=32MB", "-c", f"listen_addresses={HOST}", "-c", "jit=off")
TIMEOUT_S = 120
DIRECTORIES = ("database", "brokers", "prometheus", "objects")


class Container:
    """The environment of a compose service: files, variables, one program after the other."""

    def __init__(self, directory: Path, scripts: Path, **environment: str) -> None:
        self.directory = directory
        self.scripts = scripts
        self.port = free_port()
        found = postgresql()
        self.environment = {
            **found.environment,
            "PATH": os.pathsep.join([str(found.programs), str(scripts), os.environ["PATH"]]),
            "PGHOST": str(directory),
            "PGPORT": str(self.port),
            "PGDATA": str(directory / "server"),
            "LC_ALL": "C",
            **environment,
        }
        directory.mkdir()
        own(directory)

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.directory,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=postgresql().user,
        )

    def run(self, *command: str) -> None:
        process = self.start(*command)
        said, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, said

    @contextmanager
    def server(self, *command: str, **more: str):
        settings = [word for name in more for word in ("-c", f"{name}={more[name]}")]
        sockets = ("-c", f"unix_socket_directories={self.directory}", "-c", f"port={self.port}")
        process = self.start(*command, "postgres", *QUICKLY, *sockets, *settings)
        try:
            wait_until(lambda: process.poll() is not None or self.answers(), pause_s=0.05)
            assert process.poll() is None, process.communicate()[0]
            yield
        finally:
            process.terminate()
            process.communicate(timeout=TIMEOUT_S)

    def answers(self) -> bool:
        process = self.start("pg_isready", "--quiet", "--port", str(self.port))
        process.communicate(timeout=TIMEOUT_S)
        return process.returncode == 0


@pytest.fixture
def place():
    """A directory that the servers' user can enter, with the scripts of the compose file."""
    with tempfile.TemporaryDirectory(prefix="compose-cluster-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        prepare(directory)
        yield directory


def prepare(directory):
    scripts = directory / "scripts"
    shutil.copytree(DOCKER / "cluster", scripts)
    entry = scripts / "docker-entrypoint.sh"
    entry.write_text(ENTRY)
    entry.chmod(0o755)
    for name in DIRECTORIES:
        (directory / name).mkdir()


def make_secrets(place):
    directories = [place / name for name in DIRECTORIES]
    command = [place / "scripts" / "make-secrets", *directories]
    subprocess.run(command, check=True, timeout=TIMEOUT_S)
    return {
        f"{directory.name}/{path.name}": path.read_text()
        for directory in directories
        for path in directory.iterdir()
    }


def test_passwords_are_made_once(place):
    made = make_secrets(place)
    assert make_secrets(place) == made
    names = ("administrator", "standby", "broker")
    passwords = {made[f"database/{name}"].strip() for name in names}
    assert [len(each) for each in passwords] == [32] * 3
    assert f":{made['database/broker'].strip()}@" in made["brokers/metadata"]
    assert len(made["prometheus/http-token"].strip()) == 44
    assert made["prometheus/http-token"] == made["brokers/http-token"]


def test_object_store_and_brokers_get_one_secret(place):
    made = make_secrets(place)
    assert len(made["objects/secret"].strip()) == 32
    assert made["brokers/objects"] == made["objects/secret"]


@pytest.mark.timeout(300)
def test_a_primary_a_standby_and_the_role_of_brokers(place):
    make_secrets(place)
    secrets = place / "database"
    first = Container(place / "database-1", place / "scripts", DATABASE_SECRETS=str(secrets))
    first.run(
        "initdb", "--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256",
        "--no-sync", "--encoding=UTF8", "--locale=C", f"--pwfile={secrets / 'administrator'}",
        "--pgdata", str(first.directory / "server"),
    )  # fmt: skip
    # As the image does: first a server that no other host can reach, for the scripts.
    with first.server(cluster_name="database-1", listen_addresses=""):
        first.run(str(place / "scripts" / "primary" / "barnabas.sh"))
    second = Container(
        place / "database-2",
        place / "scripts",
        DATABASE_SECRETS=str(secrets),
        PRIMARY=HOST,
        PGPORT=str(first.port),
    )
    standby = str(place / "scripts" / "standby")
    address = (place / "brokers" / "metadata").read_text().strip()
    address = address.replace(
        "@database-1,database-2/", f"@{HOST}:{first.port},{HOST}:{second.port}/"
    )
    with first.server(cluster_name="database-1"):
        # An unfinished copy is started from scratch.
        (second.directory / "server.new").mkdir()
        own(second.directory)
        with second.server(standby, cluster_name="database-2"):
            check_what_brokers_find(address, first, secrets)
        assert (second.directory / "server" / "standby.signal").exists()
        # A second start finds it made.
        with second.server(standby, cluster_name="database-2"):
            wait_until(lambda: followers(first, secrets) == [("database-2", "quorum")])


def administrator(server, secrets):
    password = (secrets / "administrator").read_text().strip()
    return psycopg.connect(
        host=HOST, port=server.port, user="postgres", password=password, dbname="postgres"
    )


def followers(server, secrets):
    with administrator(server, secrets) as connection:
        statement = "SELECT application_name, sync_state FROM pg_stat_replication"
        return connection.execute(statement).fetchall()


def check_what_brokers_find(address, primary, secrets):
    """A role that owns its database, and may do nothing else, is all that a broker needs."""
    store = PostgreSqlMetaStore.open(address, node_id=1, new_cluster_id="cluster")
    assert store.warning is None, "the standby confirms what is committed"
    store.create_topic("t", bytes(16), 3, {})
    assert [topic.name for topic in store.load().topics] == ["t"]
    store.close()
    index = PostgreSqlLogIndex.open(address)
    assert index.partition(1) is not None
    assert index.extents(1, 0, most=1) == []
    index.close()
    assert followers(primary, secrets) == [("database-2", "quorum")]
    with administrator(primary, secrets) as connection:
        statement = (
            "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls"
            " FROM pg_roles WHERE rolname = 'barnabas'"
        )
        assert connection.execute(statement).fetchone() == (False,)
