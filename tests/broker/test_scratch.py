import os
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.opening.scratch import CHANGES, ScratchFileSystem, link_tree
from barnabas.storage.files.io import LocalFileSystem
from tests.storage.test_io import STEPS, perform, tree

CONTENTS = st.dictionaries(
    st.sampled_from(["a", "b", "d/a", "d/b"]), st.binary(max_size=60), min_size=1
)


def fill(root, contents):
    os.mkdir(root)
    os.mkdir(f"{root}/d")
    for name, content in contents.items():
        with open(f"{root}/{name}", "wb") as file:
            file.write(content)


@given(CONTENTS, STEPS)
def test_a_scratch_copy_answers_like_a_copy(contents, steps):
    with tempfile.TemporaryDirectory() as directory:
        local = LocalFileSystem()
        original, copy = f"{directory}/original", f"{directory}/copy"
        fill(original, contents)
        fill(copy, contents)
        before = tree(local, original)
        scratch = link_tree(original, directory)
        files = ScratchFileSystem(f"{directory}/{CHANGES}")
        try:
            for step in steps:
                assert perform(files, scratch, *step) == perform(local, copy, *step), step
                assert tree(files, scratch) == tree(local, copy), step
        finally:
            files.close()
        assert tree(local, original) == before


@pytest.fixture
def linked(tmp_path):
    """A scratch file system with one linked file of ten bytes."""
    (tmp_path / "original").mkdir()
    (tmp_path / "original" / "log").write_bytes(b"0123456789")
    files = ScratchFileSystem(str(tmp_path / CHANGES))
    yield files, f"{link_tree(str(tmp_path / 'original'), str(tmp_path))}/log"
    files.close()


def test_handles_see_each_others_changes(linked):
    files, path = linked
    first, second = files.open(path), files.open(path)
    first.pwritev([b"ab", b"cd"], 8)
    assert second.pread(100, 6) == b"67abcd"
    second.truncate(9)
    assert first.pread(100, 0) == b"01234567a"
    first.reserve(11)
    first.allocate(0, 100)
    first.start_writeback(0, 100)
    first.fdatasync()
    assert second.pread(100, 0) == b"01234567a\0\0"
    first.close()
    second.close()


def test_changes_outlive_their_handles(linked):
    files, path = linked
    file = files.open(path)
    for number in range(1000):
        file.pwritev([b"%04d" % number], 10 + 4 * number)
    file.pwritev([b"XX"], 4008)
    file.close()
    again = files.open(path)
    assert again.size() == 4010
    assert again.pread(10, 0) == b"0123456789"
    assert again.pread(8, 4002) == b"0998" + b"09XX"
    again.close()


def test_the_store_of_metadata_is_a_copy(tmp_path):
    original = tmp_path / "original"
    original.mkdir()
    for name in ("barnabas-metadata.sqlite", "barnabas-metadata.sqlite-wal", "barnabas-lock", "x"):
        (original / name).write_bytes(b"x")
    scratch = link_tree(str(original), str(tmp_path))
    links = {name: os.path.islink(f"{scratch}/{name}") for name in os.listdir(scratch)}
    assert links == {
        "barnabas-metadata.sqlite": False,
        "barnabas-metadata.sqlite-wal": False,
        "x": True,
    }
