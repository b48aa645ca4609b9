"""The libraries in the repository are those of their packages, but for where they import from."""

from __future__ import annotations

import re

import pytest

from tests.javascript.vendor import VENDOR, files, rewritten, table


@pytest.mark.parametrize("row", table(), ids=lambda row: row["package"])
def test_a_library_is_what_its_package_has(row):
    found = files(row)
    assert set(found) == set(row["files"])
    for name, content in found.items():
        assert (VENDOR / name).read_bytes() == content, name


def test_imports_become_paths_and_source_maps_go():
    before = b'import{h}from"preact";export{h}from"preact/hooks";\n//# sourceMappingURL=x.map\n'
    after = b'import{h}from"./preact.js";export{h}from"./hooks.js";\n'
    assert rewritten("any.js", before) == after
    assert rewritten("any.LICENSE", before) == before


@pytest.mark.parametrize("path", sorted(VENDOR.glob("*.js")), ids=lambda path: path.name)
def test_no_library_imports_by_a_bare_name(path):
    assert re.findall(rb'(?:from|import)\s*"([^./][^"]*)"', path.read_bytes()) == []
