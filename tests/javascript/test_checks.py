"""The checks of JavaScript find what is planted, and know the types of the libraries."""

from __future__ import annotations

import shutil

import pytest

from tests.counterparts import npm
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.npm import BIOME, TYPESCRIPT
from tests.javascript.__main__ import check_types, lint
from tests.javascript.vendor import VENDOR


@pytest.fixture
def scripts(tmp_path):
    """The libraries alone, to plant something beside them."""
    folder = tmp_path / "static"
    folder.mkdir()
    shutil.copytree(VENDOR, folder / VENDOR.name)
    return folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("export const f = (x) => x;", "implicitly has an 'any' type"),
        ("/** @param {string} x */\nexport const f = (x) => x * 2;", "must be of type 'any'"),
        ('import { useState } from "./vendor/hooks.js";\nuseState();\nuseState(1, 2);', "Expected"),
        ('import { render } from "./vendor/preact.js";\nrender(1);', "Expected 2 arguments"),
        ('import { signal } from "./vendor/signals.js";\nsignal(1).value = "1";', "'number'"),
        ('import { nothing } from "./vendor/signals-core.js";\nnothing();', "no exported member"),
        ('import htm from "./vendor/htm.js";\nhtm.bind(1);', "not assignable"),
        ('import uPlot from "./vendor/uplot.js";\nnew uPlot({ width: "1" });', "not assignable"),
    ],
)
def test_a_wrong_type_is_found_where_it_stands(scripts, tmp_path, capfd, text, said):
    (scripts / "planted.js").write_text(text + "\n")
    assert check_types(scripts, tmp_path / "build") != 0
    output = capfd.readouterr().out
    assert f"{scripts}/planted.js(" in output
    assert said in output


def test_what_is_right_passes(scripts, tmp_path, capfd):
    (scripts / "planted.js").write_text(
        'import { signal } from "./vendor/signals.js";\nexport const count = signal(1).value + 1;\n'
    )
    assert check_types(scripts, tmp_path / "build") == 0
    assert lint(scripts) == 0


def test_a_slip_is_found(scripts, capfd):
    (scripts / "planted.js").write_text("let text = 1;\nexport const never = text == '1';\n")
    assert lint(scripts) != 0
    said = "".join(capfd.readouterr())
    assert "noDoubleEquals" in said
    assert "useConst" in said


def test_a_tarball_that_is_not_the_pinned_one_is_refused(monkeypatch, tmp_path):
    def fetch_another(package, directory):
        (directory / "another.tgz").write_bytes(b"not this")
        return directory / "another.tgz"

    monkeypatch.setattr(npm, "fetch", fetch_another)
    monkeypatch.setattr(npm, "cache_directory", lambda: tmp_path)
    with pytest.raises(MissingCounterpart, match="biome 1 was fetched, but is not the pinned tarb"):
        npm.unpacked(npm.PinnedPackage("biome", "1", "0" * 128))
    assert list((tmp_path / "npm").iterdir()) == []


def test_every_machine_gets_the_same_versions():
    for builds in (TYPESCRIPT, BIOME):
        assert len({each.version for each in builds.values()}) == 1
        assert all(len(each.sha512) == 128 for each in builds.values())
