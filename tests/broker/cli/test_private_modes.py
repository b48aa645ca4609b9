"""Every command that makes a directory or a file makes it for its owner only, by any umask."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.cli.commands import produce
from barnabas.broker.cli.directory.cluster_transfer import export_directory, import_directory
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.proving import instances
from barnabas.broker.cli.proving.served import ServedBroker
from barnabas.broker.cli.proving.timeline import Timeline
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.metadata.catalogue import new_cluster_id
from barnabas.broker.opening import opened_directory
from barnabas.broker.server import BrokerServer
from barnabas.broker.testing.store.base import MemoryStore
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.tidy.source import sources

UMASKS = (0o022, 0o000)
PUBLIC = {"ca.pem": 0o644}
"""Names of files that clients need, in a directory that is private."""
SMALL = {"barnabas.checkpoint.interval.ms": "3600000"}
RECORDS = 4000
MAKING = re.compile(
    r"\b(make_private|make_private_directory|private_opener|mkdtemp|mkstemp|new_store"
    r"|SqliteMetaStore\.open|ScratchFileSystem|LocalFileSystem)\b"
)


class Place:
    """A directory for one case, and what is in it once the case has run."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.monkeypatch = monkeypatch
        self.seen: dict[str, int] = {}
        """Modes of files that are removed at the end, by path."""
        monkeypatch.setattr(produce, "_READ_BYTES", 16_384)

    def run(self, *arguments: object, exit_code: int = 0) -> None:
        ended = Shell(self.monkeypatch, "")(*arguments, server=False)
        assert ended.exit_code == exit_code, ended

    def modes(self) -> dict[str, int]:
        return self.seen | modes_below(self.path)


def modes_below(directory: Path) -> dict[str, int]:
    return {
        str(each.relative_to(directory)): stat.S_IMODE(each.lstat().st_mode)
        for each in directory.rglob("*")
        if not each.is_symlink()
    }


@contextlib.contextmanager
def served(place: Place, name: str, **config: str) -> Iterator[Broker]:
    with Broker(storage=place.path / name, config=SMALL | config) as broker:
        yield broker


def fill(place: Place, broker: Broker) -> None:
    """Write a topic of several segments."""
    broker.create_topic("orders", 1, {"segment.bytes": "1048576"})
    lines = "".join(f"{number} {'x' * 400}\n" for number in range(RECORDS))
    shell = Shell(place.monkeypatch, broker.bootstrap_servers)
    assert shell("produce", "orders", stdin=lines.encode()).exit_code == 0


def source(place: Place) -> Path:
    with served(place, "source") as broker:
        fill(place, broker)
    return place.path / "source"


# -------------------------------------------------------------------------------------- the cases


def serve(place: Place) -> None:
    audit = str(place.path / "audit.log")
    with served(place, "parent/data", **{"barnabas.audit.log": audit}) as broker:
        fill(place, broker)
        place.seen = modes_below(place.path)


def backup_of_a_running_broker(place: Place) -> None:
    with served(place, "source") as broker:
        fill(place, broker)
        place.run("backup", place.path / "copy", "-d", place.path / "source")


def backup_of_a_stopped_broker(place: Place) -> None:
    place.run("backup", place.path / "copy", "-d", source(place))


def restore(place: Place) -> None:
    backup_of_a_stopped_broker(place)
    place.run("restore", place.path / "copy", place.path / "there" / "restored")
    with served(place, "there/restored") as broker:
        assert len(broker.records("orders").result) == RECORDS
        place.seen = modes_below(place.path)


def export(place: Place) -> None:
    directory, config = source(place), load_config().config
    with contextlib.closing(MemoryStore(new_cluster_id())) as store:
        import_directory(str(directory), store.base(), config)
        export_directory(str(place.path / "exported"), store.base(), config)
    assert (place.path / "exported" / "orders-0").is_dir()


class CachingBroker(Broker):
    """Broker of a cluster whose cache is in files."""

    def _new_server(self, *_: object) -> BrokerServer:
        return super()._new_server(base=MemoryStore(new_cluster_id()).base())


def cache_of_a_cluster(place: Place) -> None:
    with CachingBroker(storage=str(place.path / "cache")) as broker:
        fill(place, broker)
        place.seen = modes_below(place.path)
    assert "cache/orders-0" in place.seen


def init(place: Place) -> None:
    place.run("init", "--secure", place.path / "there" / "secure")


def renewal(place: Place) -> None:
    init(place)
    place.run("init", "--renew", place.path / "there" / "secure")


def check(place: Place) -> None:
    directory, scratch = source(place), place.path / "scratch"
    scratch.mkdir(mode=0o700)
    remove = opened_directory.shutil.rmtree

    def note(path: str) -> None:
        place.seen = modes_below(scratch)
        remove(path)

    place.monkeypatch.setattr(opened_directory.tempfile, "tempdir", str(scratch))
    place.monkeypatch.setattr(opened_directory.shutil, "rmtree", note)
    place.run("check", "-d", directory)
    assert len(place.seen) > 3


def repair(place: Place) -> None:
    directory = source(place)
    first = min((directory / "orders-0").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[5000] ^= 1
    first.write_bytes(content)
    place.run("check", "-d", directory, "--repair", "--yes")


def proof(place: Place) -> None:
    """Begin to prove a program; neither the broker nor the program can be started."""

    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError

    place.monkeypatch.setattr(instances.subprocess, "Popen", refuse)
    with pytest.raises(FileNotFoundError):
        ServedBroker(place.path, 1).start()
    with pytest.raises(CommandError):
        instances.Instances(["program"], "localhost:1", place.path, Timeline()).start(1)


CASES: dict[Callable[[Place], None], set[str]] = {
    serve: {"serve"},
    backup_of_a_running_broker: {"backup", "directory_copy"},
    backup_of_a_stopped_broker: {"backup", "directory_copy"},
    restore: {"restore", "directory_copy"},
    export: {"cluster_transfer", "directory_copy"},
    cache_of_a_cluster: {"serve"},
    init: {"init"},
    renewal: {"renewal"},
    check: {"check", "directory_lock"},
    repair: {"repair"},
    proof: {"instances", "served"},
}
"""Actions that make directories and files, and the modules of ``broker/cli`` that they use."""
READING = {"dump_log", "passwords"}
"""Modules that open files only to read them."""


@pytest.mark.parametrize("umask", UMASKS, ids=oct)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_files_that_a_command_makes_are_private(case, umask, tmp_path, monkeypatch):
    place = Place(tmp_path, monkeypatch)
    before = os.umask(umask)
    try:
        case(place)
    finally:
        os.umask(before)
    modes = place.modes()
    assert modes
    shown = {
        path: oct(mode)
        for path, mode in modes.items()
        if mode & 0o077 and PUBLIC.get(Path(path).name) != mode
    }
    assert shown == {}


def test_every_module_that_makes_files_has_a_case():
    making = {
        each.path.stem for each in sources("broker/cli") if MAKING.search(ast.unparse(each.tree))
    }
    assert making - READING <= set.union(*CASES.values())


# ---------------------------------------------------------------------- what exists keeps its mode


@pytest.mark.parametrize("mode", [0o750, 0o2770, 0o755], ids=oct)
def test_a_directory_that_exists_keeps_the_mode_its_owner_chose(mode, tmp_path, monkeypatch):
    place = Place(tmp_path, monkeypatch)
    for name in ("data", "restored"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    with served(place, "data") as broker:
        broker.create_topic("orders", 1)
    place.run("backup", tmp_path / "copy", "-d", tmp_path / "data")
    place.run("restore", tmp_path / "copy", tmp_path / "restored")
    modes = place.modes()
    assert modes.pop("data") == modes.pop("restored") == mode
    assert {path: oct(each) for path, each in modes.items() if each & 0o077} == {}
