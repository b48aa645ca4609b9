"""The image, built by buildah in a store of its own, and what its configuration says."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.image.base_image import BASE_NAME
from tests.image.tools import MissingTool, run

ROOT = Path(__file__).parents[2]
NAME = "localhost/barnabas:check"
BUILD_TIMEOUT_S = 600
# Settings of pip's that a build elsewhere on this machine needs as well.
PIP_KEYS = {"index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout", "retries"}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True)
class Image:
    """A built image."""

    name: str
    root: Path
    """The root directory of the image, read-only."""
    config: dict[str, Any]
    size_bytes: int
    build_log: str = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that every process in a container has."""
        return dict(each.split("=", 1) for each in self.config["Env"])


class Store:
    """Buildah's images and containers, in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        settings = directory / "storage.conf"
        settings.write_text(
            f'[storage]\ndriver = "{_driver(directory)}"\ngraphroot = "{directory}/images"\n'
            f'runroot = "{directory}/run"\n'
            '[storage.options.overlay]\nskip_mount_home = "true"\n'
        )
        self._environment = {
            "CONTAINERS_STORAGE_CONF": str(settings),
            # No namespaces and mounts of its own, which many machines without an engine refuse.
            "BUILDAH_ISOLATION": "chroot",
        }

    def buildah(self, *arguments: str, timeout_s: float = 120) -> str:
        """Run buildah and return what it printed."""
        return run(["buildah", *arguments], env=self._environment, timeout_s=timeout_s).strip()

    def add_base(self, archive: Path) -> None:
        """Take the base image from the file that has it."""
        self.buildah("pull", "--quiet", f"docker-archive:{archive}")

    def build(self) -> Image:
        """Build the image as `make image` does, on the base of this store."""
        secrets = self.directory / "pip.conf"
        secrets.write_text(pip_configuration())
        environment = {
            **self._environment,
            "ENGINE": "buildah",
            "IMAGE": NAME,
            "BASE_IMAGE": BASE_NAME,
            "PIP_CONFIGURATION": str(secrets),
            **({"CA_CERTIFICATES": CERTIFICATES} if os.path.exists(CERTIFICATES) else {}),
        }
        log = run([str(ROOT / "docker/build")], env=environment, timeout_s=BUILD_TIMEOUT_S)
        config = json.loads(self.buildah("inspect", "--type", "image", NAME))["Docker"]["config"]
        images = json.loads(self.buildah("images", "--json", NAME))
        root = self.buildah("mount", self.buildah("from", "--pull-never", NAME))
        return Image(NAME, Path(root), config, _size_bytes(images[0]["size"]), log)

    def clear(self) -> None:
        """Remove all containers and images."""
        self.buildah("rm", "--all")
        self.buildah("rmi", "--all", "--force")


def _driver(directory: Path) -> str:
    """Return the driver of layers: overlay if the file system takes one, else plain copies."""
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        lower, upper, work, merged = (Path(scratch) / name for name in ("l", "u", "w", "m"))
        for path in (lower, upper, work, merged):
            path.mkdir()
        layers = f"lowerdir={lower},upperdir={upper},workdir={work}"
        try:
            run(["mount", "-t", "overlay", "-o", layers, "overlay", str(merged)], timeout_s=30)
        except MissingTool:
            return "vfs"
        run(["umount", str(merged)], timeout_s=30)
    return "overlay"


def pip_configuration() -> str:
    """Return a pip.conf with the settings of pip's index from files and variables here."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    lines = ["[global]"]
    for line in listed.splitlines():
        match = re.fullmatch(r"[^.]+\.([a-z-]+)=('.*'|\".*\")", line)
        if match and match[1] in PIP_KEYS:
            value = " ".join(ast.literal_eval(match[2]).split())
            lines.append(f"{match[1]} = {value}")
    return "\n".join(lines) + "\n"


def _size_bytes(text: str) -> int:
    number, unit = text.split()
    return int(float(number) * {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}[unit.upper()])
