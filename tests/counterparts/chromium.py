"""Chromium without windows, for the tests in a browser: Debian's, unpacked without root.

apt finds what the machine lacks and fetches it, with lists and a cache of its own, so that neither
root nor the machine's own lists are needed; nothing is installed. Playwright's own browsers are not
used: they come from no package registry.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.spark_connector.session.cache import cache_directory
from tests.counterparts.debian import Apt, enter, extract
from tests.counterparts.errors import MissingCounterpart

PACKAGE = "chromium-headless-shell"
FONTS = ("fonts-dejavu-core", "fonts-liberation")
"""Fonts that make pictures look the same everywhere; a machine need not have any."""
IN_THE_PACKAGE = Path("usr/lib/chromium/chromium-headless-shell")
OTHERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Names of a browser on the path of a machine without Debian's packages."""
_LIBRARY = re.compile(r"\.so(\.\d+)*$")


class Chromium(NamedTuple):
    """A browser: its program, and the environment that it needs."""

    path: Path
    environment: dict[str, str]

    def version(self) -> str | None:
        """Return the version that the browser prints, or None if it does not start."""
        try:
            answer = subprocess.run(
                [self.path, "--version"],
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return answer.stdout.strip() if answer.returncode == 0 and answer.stdout else None


@functools.cache
def chromium() -> Chromium:
    """Return a Chromium that starts, unpacked into the cache at the first call."""
    directory = cache_directory() / "chromium"
    found = _unpacked(directory)
    if found.version() is not None:
        return found
    try:
        _fetch(directory)
    except MissingCounterpart as missing:
        return _other(missing)
    found = _unpacked(directory)
    if found.version() is None:
        raise MissingCounterpart(f"{found.path} was unpacked, but does not start")
    return found


def _unpacked(directory: Path) -> Chromium:
    libraries = sorted({str(path.parent) for path in _libraries(directory)})
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "FONTCONFIG_FILE": str(directory / "fonts.conf"),
    }
    return Chromium(directory / IN_THE_PACKAGE, environment)


def _libraries(directory: Path) -> Iterator[Path]:
    # libpulse0 has a folder of its own below that of its architecture.
    for folder in ("lib", "usr/lib"):
        yield from (
            path for path in directory.glob(f"{folder}/**/*.so*") if _LIBRARY.search(path.name)
        )


def _other(missing: MissingCounterpart) -> Chromium:
    for path in filter(None, map(shutil.which, OTHERS)):
        other = Chromium(Path(path), dict(os.environ))
        if other.version() is not None:
            return other
    raise missing


# ------------------------------------------------------------------------------------- fetching


def _fetch(directory: Path) -> None:
    """Unpack the browser, its fonts, and the libraries that the machine lacks."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise MissingCounterpart(
            f"Chromium is needed: {PACKAGE} of Debian, or one of {', '.join(OTHERS)} on the path"
        )
    # On the same file system, so that it enters the cache by rename: two processes at once
    # never see half of it.
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        apt = Apt(Path(scratch) / "apt", "Chromium")
        root = Path(scratch) / "chromium"
        root.mkdir()
        extract(apt.download(apt.missing(PACKAGE, *FONTS)), root)
        (root / "fonts.conf").write_text(_fonts_configuration(directory))
        enter(root, directory)


def _fonts_configuration(directory: Path) -> str:
    """Return which fonts stand for the families that a page names in general."""
    families = {"sans-serif": "Sans", "serif": "Serif", "monospace": "Mono"}
    aliases = "".join(
        f"<alias binding='same'><family>{family}</family>"
        f"<prefer><family>Liberation {name}</family></prefer></alias>"
        for family, name in families.items()
    )
    # Of any other name, and of system-ui, which the browser asks for without one.
    last = "".join(f"<string>{family} Sans</string>" for family in ("Liberation", "DejaVu"))
    return (
        "<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig>"
        f"<dir>{directory}/usr/share/fonts</dir><dir>/usr/share/fonts</dir>"
        f"<cachedir>{directory}/fontconfig</cachedir>{aliases}"
        f"<match><edit name='family' mode='append_last'>{last}</edit></match></fontconfig>"
    )
