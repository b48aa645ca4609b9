"""Tools of this machine for building and running the image."""

from __future__ import annotations

import os
import shutil
import subprocess

# By the package that brings them.
COMMANDS = {
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "apt-get": "apt",
}


class MissingTool(Exception):
    """The image cannot be checked here, and why."""


def check_tools() -> None:
    """Install what is missing where that is possible; raises MissingTool."""
    if os.geteuid() != 0:
        raise MissingTool("making namespaces and a base image needs root")
    missing = {package for command, package in COMMANDS.items() if shutil.which(command) is None}
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise MissingTool(f"needs {', '.join(sorted(missing))}, and this is not a Debian")
    install = ["apt-get", "install", "--yes", "--quiet=2", "--no-install-recommends"]
    run(["apt-get", "update", "--quiet=2"], timeout_s=180)
    run([*install, *sorted(missing)], timeout_s=300)


def run(command: list[str], *, timeout_s: float, env: dict[str, str] | None = None) -> str:
    """Run a command and return what it printed; raises MissingTool with the end of its words."""
    result = subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if result.returncode:
        said = (result.stdout + result.stderr)[-3000:]
        raise MissingTool(f"{' '.join(command[:3])} failed with {result.returncode}:\n{said}")
    return result.stdout
