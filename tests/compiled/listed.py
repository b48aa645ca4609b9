"""The modules that pyproject.toml lists for mypyc."""

from __future__ import annotations

import tomllib

from tests.checkout import ROOT, SOURCES


def compiled_modules() -> list[str]:
    """Return the names of the modules that the build hook compiles."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    hook = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]
    paths = [ROOT / pattern.removeprefix("/") for pattern in hook["include"]]
    files = [file for path in paths for file in (path.glob("*.py") if path.is_dir() else [path])]
    modules = [file.relative_to(SOURCES).with_suffix("") for file in files]
    return sorted(".".join(each.parts).removesuffix(".__init__") for each in modules)
