"""A file with pipelines as a program of its own: for `spark-submit`, and for `python`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from barnabas.spark_connector.pipelines.pipeline import Pipeline


def run(*pipelines: Pipeline, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run pipelines as `python -m barnabas.spark run` does, with its options, and end Python.

    Call it after `if __name__ == "__main__":`, so that the command can run the file as well. With
    `spark-submit`, master and settings are its own. ``arguments`` are by default the program's.
    """
    # Tasks import the package as well, without the command.
    from barnabas.spark_connector.running.command import run_given

    sys.exit(run_given(pipelines, arguments))
