"""Instructions of a request: what is read from valgrind's tools."""

import pytest

from tests.bench.instructions import Counted, total

PRINTED = """\
----------------------------------------
Ir
----------------------------------------
360,502,621 (100.0%)  PROGRAM TOTALS

 15,212,206 ( 4.22%)  ceval.c:_PyEval_EvalFrameDefault
"""


def test_the_total_of_a_program_is_read():
    assert total(PRINTED) == 360_502_621


def test_a_page_without_a_total_is_refused():
    with pytest.raises(AssertionError, match="nothing"):
        total("nothing")


def test_a_broker_runs_under_callgrind_and_does_not_count_at_its_start(tmp_path):
    command = Counted(tmp_path).command()
    assert command[:3] == ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
    assert command[3] == f"--callgrind-out-file={tmp_path / 'callgrind.out'}"
    assert "serve" in command
