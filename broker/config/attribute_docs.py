"""The docstrings below the fields of a class, as Python itself does not keep them."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache


@cache
def attribute_docs(kind: type) -> dict[str, str]:
    """Return the docstrings of a class's fields by name, those of its bases included."""
    docs: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        docs |= _docs_in(each.__module__).get(each.__name__, {})
    return docs


@cache
def _docs_in(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings below fields, by class, of a module."""
    docs: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef):
            docs[node.name] = {
                line.target.id: inspect.cleandoc(below.value.value).replace("\n", " ")
                for line, below in zip(node.body, node.body[1:], strict=False)
                if isinstance(line, ast.AnnAssign)
                and isinstance(line.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            }
    return docs
