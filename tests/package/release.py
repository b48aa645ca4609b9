"""``make release VERSION=x.y.z``: check and build a release, and stop before anything is published.

The files are written to ``dist/VERSION``. docs/development/release.md describes the steps after it.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from barnabas.broker.version import __version__
from tests.archives import extract
from tests.checkout import ROOT
from tests.counterparts.errors import MissingCounterpart
from tests.counterparts.go import tool
from tests.package.builds import (
    BuildFailed,
    build_compiled_wheel,
    build_pure_wheel,
    build_sdist,
    reproducible,
    run,
    sha256,
)
from tests.package.installed import environment_with
from tests.real.formats.write import ENDS, FOLDER

MINORS = range(11, 15)
"""Minor versions of Python 3 with a compiled wheel."""
PLATFORM = f"manylinux_2_28_{platform.machine()}"
CHECKSUMS = "SHA256SUMS"
NEXT_STEPS = """
dist/{version} is complete; nothing was published. Next:
  1. Read dist/{version}/{checksums} and try the wheel: pip install dist/{version}/*-none-any.whl
  2. git tag --annotate --message 'Barnabas {version}' v{version}
  3. git push origin v{version}
The workflow .github/workflows/release.yml builds the same files again, and the wheels of all
Pythons and processors, and waits for the approval of its environment before it publishes. See
docs/development/release.md.
"""


class Refused(Exception):
    """The checkout is not ready for the release; the message has the reason and what to do."""


def main() -> int:
    """Check, build, and print the next steps."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("version", help="the version, for example 0.1.0")
    parser.add_argument(
        "--without-compiled", action="store_true", help="leave out the compiled wheels"
    )
    arguments = parser.parse_args()
    try:
        check(arguments.version)
        build(ROOT / "dist" / arguments.version, with_compiled=not arguments.without_compiled)
    except (Refused, BuildFailed, MissingCounterpart) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(NEXT_STEPS.format(version=arguments.version, checksums=CHECKSUMS))
    return 0


# ------------------------------------------------------------------------------------ the checks


def check(version: str) -> None:
    """Raise Refused with all reasons for which the checkout is not this release."""
    reasons = [reason for reason in reasons_against(version, ROOT) if reason]
    if reasons:
        raise Refused("; ".join(reasons))


def reasons_against(version: str, root: Path) -> Iterator[str | None]:
    """Yield each reason for which the checkout in ``root`` is not the release ``version``."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"VERSION={version} is not of the form 0.1.0"
    if version != __version__:
        yield f"broker/version.py has version {__version__}, not {version}"
    yield changelog_reason(version, (root / "CHANGELOG.md").read_text(encoding="utf-8"))
    for end in ENDS:
        path = FOLDER / f"barnabas-{version}-{end}.tar.xz"
        if not path.exists():
            yield f"{path.name} is missing: run python -m tests.real.formats.write"
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        yield f"the tree has {len(changed)} changed files, {changed[0][3:]} first: commit them"
    if _git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} exists"


def changelog_reason(version: str, text: str) -> str | None:
    """Check that the changelog describes ``version``; return a reason, or None."""
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    dated = rf"\[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d"
    if not any(re.fullmatch(dated, each) for each in headings):
        return f"CHANGELOG.md has no heading '## {version} - YYYY-MM-DD'"
    (section,) = re.findall(
        rf"^## \[?{re.escape(version)}\b.*?$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    return None if section.strip() else f"CHANGELOG.md has nothing below its heading {version}"


def _git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=60, check=True
    ).stdout


# ------------------------------------------------------------------------------------- the build


def build(directory: Path, *, with_compiled: bool) -> None:
    """Write all files of the release into ``directory``, which must not exist."""
    if directory.exists():
        raise Refused(f"{directory} exists: remove it first")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        made = scratch / "made"
        made.mkdir()
        sdist = build_sdist(made)
        wheel = pure_wheel(sdist, scratch / "first", made)
        compare(sdist, wheel, scratch)
        write_sbom(wheel, scratch / "environment", made / f"barnabas-{__version__}.cdx.json")
        if with_compiled:
            for python in interpreters():
                compiled = build_compiled_wheel(scratch / Path(python).name, sdist, python)
                repair(compiled, made)
        run(tool("helm"), "package", ROOT / "docker" / "chart", "--destination", made, cwd=scratch)
        write_checksums(made)
        directory.parent.mkdir(exist_ok=True)
        shutil.copytree(made, directory)


def pure_wheel(sdist: Path, scratch: Path, directory: Path) -> Path:
    """Build the pure wheel from the sdist, as pip does."""
    extract(sdist, scratch)
    (source,) = scratch.iterdir()
    return build_pure_wheel(directory, source)


def compare(sdist: Path, wheel: Path, scratch: Path) -> None:
    """Build the sdist and the pure wheel again elsewhere; the bytes must be the same."""
    again = scratch / "again"
    second = build_sdist(again)
    pairs = {sdist: second, wheel: pure_wheel(second, scratch / "second", again / "wheel")}
    for first, other in pairs.items():
        if sha256(first) != sha256(other):
            raise BuildFailed(f"two builds of {first.name} differ")


def write_sbom(wheel: Path, environment: Path, path: Path) -> None:
    """Write the SBOM (CycloneDX) of an environment with the wheel and three extras."""
    commands = environment_with(environment, f"{wheel}[objects,postgresql,security]")
    run(commands / "python", "-m", "pip", "uninstall", "--quiet", "--yes", "pip", cwd=environment)
    command = (Path(sys.executable).parent / "cyclonedx-py", "environment", "--output-reproducible")
    run(*command, "--output-file", path, commands / "python", cwd=environment)


def interpreters() -> list[str]:
    """Return the Pythons of this machine that compiled wheels are built for."""
    running = sys.version_info[1]
    others = {minor: _python(minor) for minor in MINORS if minor != running}
    found = {minor: python for minor, python in others.items() if python}
    return [path for _, path in sorted({**found, running: sys.executable}.items())]


def _python(minor: int) -> str | None:
    """Return a Python 3 of this minor version on the path or among those of pyenv, if any works."""
    on_path = shutil.which(f"python3.{minor}")
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(root.glob(f"versions/3.{minor}.*/bin/python3.{minor}"))
    candidates = [*([on_path] if on_path else []), *map(str, installed)]
    return next((python for python in candidates if _works(python)), None)


def _works(python: str) -> bool:
    # A shim of pyenv exists for versions that are not chosen.
    result = subprocess.run([python, "-c", ""], capture_output=True, timeout=60, check=False)
    return result.returncode == 0


def repair(wheel: Path, directory: Path) -> Path:
    """Give a compiled wheel its manylinux tag; auditwheel refuses symbols of a newer glibc."""
    commands = Path(sys.executable).parent
    # The modules need no library that the platform lacks, so no ELF file has to be patched.
    options = ("--patcher", "none", "--only-plat", "--plat", PLATFORM, "--wheel-dir", directory)
    variables = reproducible(directory) | {"PATH": f"{commands}:/usr/bin:/bin"}
    before = {*directory.iterdir()}
    run(commands / "auditwheel", "repair", *options, wheel, cwd=directory, **variables)
    (repaired,) = {*directory.iterdir()} - before
    return repaired


def write_checksums(directory: Path) -> None:
    """Write the file that ``sha256sum --check`` reads."""
    names = sorted(path.name for path in directory.iterdir())
    lines = [f"{sha256(directory / name)}  {name}\n" for name in names]
    (directory / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
