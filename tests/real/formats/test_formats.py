"""The data directories of each release open, with all that clients saw in them."""

from __future__ import annotations

import json
import shutil

import pytest

from barnabas.broker.version import __version__
from tests.counterparts.embedded_barnabas import EmbeddedBarnabas
from tests.interop.recorded_directory import LATER_S, unpack
from tests.real.formats.contents import SETTINGS, TOPICS, continue_with, observe
from tests.real.formats.write import ENDS, FOLDER

ARCHIVES = sorted(FOLDER.glob("*.tar.xz"))
KINDS = {
    ".index",
    ".log",
    ".snapshot",
    ".timeindex",
    ".txnindex",
    "barnabas-checkpoint",
    "barnabas-commit-mark",
    "barnabas-journal",
    "barnabas-metadata.sqlite",
}
"""Kinds of files of a data directory."""


def opened(archive, directory):
    """Return a broker of the directory; its clock starts when the directory was left."""
    settings = {key.replace(".", "_"): value for key, value in SETTINGS.items()}
    broker = EmbeddedBarnabas(directory, **settings)
    shutil.rmtree(broker.data_directory, ignore_errors=True)
    broker.begin_at(unpack(archive, broker.data_directory) + LATER_S)
    # Clients of the tests stamp their records by the machine's clock.
    broker.overrides["log.message.timestamp.after.max.ms"] = str(2**63 - 1)
    return broker


def test_current_version_has_its_directories():
    names = [f"barnabas-{__version__}-{end}.tar.xz" for end in ENDS]
    assert {*names} <= {path.name for path in ARCHIVES}, "python -m tests.real.formats.write"


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES, ids=[path.name for path in ARCHIVES])
def test_directory_of_a_release_opens_with_all_that_clients_saw(archive, tmp_path):
    observed = json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())
    broker = opened(archive, tmp_path)
    with broker:
        assert observe(broker) == observed
        continue_with(broker)
        broker.terminate()
        broker.start()
        assert observe(broker)["records"].keys() == observed["records"].keys()


@pytest.mark.parametrize("archive", ARCHIVES, ids=[path.name for path in ARCHIVES])
def test_directory_of_a_release_has_each_kind_of_file(archive, tmp_path):
    unpack(archive, tmp_path / "data")
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    found = {kind for kind in KINDS for path in files if kind in path.name}
    # A clean stop leaves snapshots and an index of aborted transactions; a kill need not.
    assert KINDS - found <= (set() if "stopped" in archive.name else {".snapshot", ".txnindex"})
    assert {path.parent.name for path in files} >= {f"{topic}-0" for topic in TOPICS}
