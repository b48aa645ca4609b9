"""System packages that a counterpart needs: installed where that is allowed."""

import os
import shutil
import subprocess


def install(*packages: str) -> None:
    """Install Debian packages, if this is root on a system with apt; who asks looks for them."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        subprocess.run(
            ["apt-get", "--quiet", *arguments],
            env=environment,
            capture_output=True,
            timeout=300,
            check=False,
        )
