"""A C compiler and Python's headers, for the modules that the image has compiled."""

import shutil
import sysconfig
from pathlib import Path

from tests.counterparts.debian import install
from tests.counterparts.errors import MissingCounterpart


def compiler() -> str:
    """Return the path of `cc`, installing it and the headers where that is allowed."""
    if not _is_complete():
        install("gcc", "libc6-dev", "python3-dev")
    if not _is_complete():
        raise MissingCounterpart(
            "a C compiler and the headers of this Python are needed: "
            "`apt-get install gcc libc6-dev python3-dev`"
        )
    return str(shutil.which("cc"))


def _is_complete() -> bool:
    headers = Path(sysconfig.get_path("include"))
    return shutil.which("cc") is not None and (headers / "Python.h").exists()
