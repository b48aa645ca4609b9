"""A base image from Debian's packages, like python:slim: Python, no documentation, no caches.

debootstrap builds it from the archive and the release in apt's configuration here. Later runs use
it again, by a name that changes with the packages that apt would install.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
import tarfile
import tempfile
from pathlib import Path

from barnabas.spark_connector.session.cache import cache_directory
from tests.image.tools import MissingTool, run

BASE_NAME = "localhost/base:check"
LAYER, CONFIGURATION = "layer.tar", "configuration.json"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
PACKAGES = "ca-certificates,python3,python3-venv"
WATCHED = ("libc6", "libssl3", "python3", "bash", "dpkg")
# Left out of Debian's slim images too, or only of use to apt on this machine.
NOT_IN_A_BASE = (
    "usr/share/doc/*", "usr/share/man/*", "usr/share/info/*", "usr/share/locale/*",
    "var/cache/apt/*", "var/lib/apt/lists/*", "var/cache/debconf/*-old", "var/lib/dpkg/*-old",
    "var/log/*.log", "var/log/apt", "tmp/*", "etc/hostname", "etc/resolv.conf",
)  # fmt: skip

# As in Debian's slim images: what is installed in them is not synced, and has no translations.
SETTINGS = {
    "etc/dpkg/dpkg.cfg.d/docker-apt-speedup": "force-unsafe-io\n",
    "etc/apt/apt.conf.d/docker-no-languages": 'Acquire::Languages "none";\n',
}


def base_archive() -> Path:
    """Return the base as Docker saves an image, made now or by an earlier run."""
    mirror, release = _archive_and_release()
    seen = run(["apt-cache", "policy", *WATCHED], timeout_s=60)
    candidates = [line for line in seen.splitlines() if "Candidate:" in line]
    settings = (text for item in SETTINGS.items() for text in item)
    what = "\n".join([BASE_NAME, mirror, release, PACKAGES, *NOT_IN_A_BASE, *settings, *candidates])
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
        for name, text in SETTINGS.items():
            (root / name).write_text(text, encoding="utf-8")
        layer = Path(scratch) / LAYER
        run(["tar", "--create", "--file", str(layer), "--directory", str(root), "."], timeout_s=120)
        new = Path(scratch) / "base.tar"
        _save(layer, new)
        os.replace(new, archive)


def _save(layer: Path, archive: Path) -> None:
    """Write an image of one layer."""
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    manifest = [{"Config": CONFIGURATION, "RepoTags": [BASE_NAME], "Layers": [LAYER]}]
    configuration = {
        "architecture": MACHINES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    described = ((CONFIGURATION, configuration), ("manifest.json", manifest))
    with tarfile.open(archive, "w") as tar:
        for name, content in described:
            text = json.dumps(content).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
        tar.add(layer, LAYER)
