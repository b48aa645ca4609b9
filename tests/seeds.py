"""The seed of what tests draw: the same in every run, unless SEED names another."""

from __future__ import annotations

import os

SEED = int(os.environ.get("SEED", "20261123"))
"""pytest prints it below every run."""
