"""Where this checkout is, and what lets another Python find its packages and its tests."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = Path(os.environ.get("BARNABAS_SOURCES") or ROOT / "src")
"""What tests and the processes that they start run; `make mutants` has them run changed copies."""
PYTHONPATH = f"{SOURCES}{os.pathsep}{ROOT}"
