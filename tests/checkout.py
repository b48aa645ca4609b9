"""Where this checkout is, and what lets another Python find its packages and its tests."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
PYTHONPATH = f"{SOURCES}{os.pathsep}{ROOT}"
