"""A base image from Debian's packages, like python:slim: Python, no documentation, no caches.

debootstrap builds it from the archive and the release in apt's configuration here. Later runs use
it again, by a name that changes with the packages that apt would install.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from barnabas.spark_connector.session.cache import cache_directory
from tests.image.tools import MissingTool, run

PACKAGES = "ca-certificates,python3,python3-venv"
WATCHED = ("libc6", "libssl3", "python3", "bash", "dpkg")
# Left out of Debian's slim images too, or only of use to apt on this machine.
NOT_IN_A_BASE = (
    "usr/share/doc/*", "usr/share/man/*", "usr/share/info/*", "usr/share/locale/*",
    "var/cache/apt/*", "var/lib/apt/lists/*", "var/cache/debconf/*-old", "var/lib/dpkg/*-old",
    "var/log/*.log", "var/log/apt", "tmp/*", "etc/hostname", "etc/resolv.conf",
)  # fmt: skip


def base_archive() -> Path:
    """Return a tar file of the base's root directory, made now or by an earlier run."""
    mirror, release = _archive_and_release()
    seen = run(["apt-cache", "policy", *WATCHED], timeout_s=60)
    candidates = [line for line in seen.splitlines() if "Candidate:" in line]
    what = "\n".join([mirror, release, PACKAGES, *NOT_IN_A_BASE, *candidates])
    name = f"base-{release}-{hashlib.sha256(what.encode()).hexdigest()[:12]}.tar"
    directory = cache_directory() / "image"
    directory.mkdir(exist_ok=True)
    if not (directory / name).exists():
        for older in directory.glob("base-*.tar"):
            older.unlink()
        _make(mirror, release, directory / name)
    return directory / name


def _archive_and_release() -> tuple[str, str]:
    """Return the Debian archive that apt uses, and this machine's release."""
    release = run(["sh", "-c", '. /etc/os-release; echo "$ID $VERSION_CODENAME"'], timeout_s=10)
    distribution, _, codename = release.strip().partition(" ")
    if distribution != "debian":
        raise MissingTool(f"the base is made from Debian's packages, and this is {distribution}")
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)"]
    for line in run([*targets, "Created-By: Packages"], timeout_s=60).splitlines():
        uri, name, component = line.split()
        if (name, component) == (codename, "main"):
            return uri, codename
    raise MissingTool(f"apt is not configured with Debian {codename}; try 'apt-get update'")


def _make(mirror: str, release: str, archive: Path) -> None:
    # On the same file system as the archive, which appears whole or not at all.
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        root = Path(scratch) / "root"
        options = ["--variant=minbase", f"--include={PACKAGES}"]
        run(["debootstrap", *options, release, str(root), mirror], timeout_s=600)
        for pattern in NOT_IN_A_BASE:
            for path in root.glob(pattern):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        new = Path(scratch) / "base.tar"
        run(["tar", "--create", "--file", str(new), "--directory", str(root), "."], timeout_s=120)
        os.replace(new, archive)
