"""``python -m barnabas.protocol.generate [--check]``."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from barnabas.protocol.generate.module import STRAIGHT, module_text, registry_text
from barnabas.protocol.generate.schema import SchemaError, read_schema

PROTOCOL = Path(__file__).resolve().parent.parent
HAND_WRITTEN = {"__init__.py"}


def generate(schemas: Path) -> dict[str, str]:
    """Text of every generated file by name, from the ``*.schema`` files in a directory."""
    parsed = {path.stem: read_schema(path) for path in sorted(schemas.glob("*.schema"))}
    files = {
        f"{name}.py": module_text(schema, name, is_straight=name in STRAIGHT)
        for name, schema in parsed.items()
    }
    files["registry.py"] = registry_text(parsed)
    return files


def write(files: dict[str, str], directory: Path) -> int:
    """Write the files that differ and remove those that are no longer generated; return 0."""
    for name in existing(directory) - files.keys():
        (directory / name).unlink()
    for name, text in files.items():
        path = directory / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return 0


def check(files: dict[str, str], directory: Path) -> int:
    """Print the differences between the directory and the generated files; return 1 if any."""
    different = False
    for name in sorted(existing(directory) | files.keys()):
        path = directory / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = difflib.unified_diff(
            old.splitlines(keepends=True),
            files.get(name, "").splitlines(keepends=True),
            f"{name} (committed)",
            f"{name} (generated)",
        )
        for line in lines:
            different = True
            sys.stdout.write(line)
    return int(different)


def existing(directory: Path) -> set[str]:
    """Return the names of the existing generated files."""
    return {path.name for path in directory.glob("*.py")} - HAND_WRITTEN


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m barnabas.protocol.generate",
        description="Generate protocol/messages from protocol/schemas.",
    )
    parser.add_argument("--check", action="store_true", help="change nothing, print what differs")
    parser.add_argument("--schemas", type=Path, default=PROTOCOL / "schemas")
    parser.add_argument("--messages", type=Path, default=PROTOCOL / "messages")
    options = parser.parse_args(arguments)
    try:
        files = generate(options.schemas)
    except SchemaError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return (check if options.check else write)(files, options.messages)


if __name__ == "__main__":
    sys.exit(main())
