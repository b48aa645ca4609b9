"""Files and directories of the broker and its commands are made by the helpers of
storage/files/io.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.source import Source, sources

HELPERS = "storage/files/io.py"
"""The file that makes all others private; ``tests/broker/cli/test_private_modes.py`` runs it."""
ELSEWHERE = {
    "broker/cli/directory/directory_copy.py": {"sqlite3.connect"},  # Made by make_private before.
    "storage/metastore/sqlite.py": {"sqlite3.connect"},  # Made by make_private before.
    "broker/config/pages/generated_page.py": {"write_text"},  # A page of docs/.
    "protocol/generate/__main__.py": {"write_text"},  # Modules of this repository.
    "spark_connector/session/cache.py": {"mkdir"},  # With a mode, for jars that are public.
    "spark_connector/session/jars.py": {"mkdir", "write_text"},  # In that cache.
    "spark_connector/session/java.py": {"mkdir", "write_text", "chmod"},  # In that cache.
    # In Spark's checkpoint, whose other files Spark makes: identifiers and offsets, no records.
    "spark_connector/checkpoint/checkpoint_files.py": {"mkdir", "open"},
    "broker/cli/commands/restore.py": {
        "chmod"
    },  # The mode of an empty directory that existed before.
}
"""Calls that other files may use, and why those show nothing."""
MAKERS = {
    *("mkdir", "makedirs", "copytree", "copyfile", "copy", "copy2", "chmod", "umask"),
    *("write_text", "write_bytes", "touch", "mkfifo", "mknod"),
}
MODULES = {"os", "shutil"}
"""``copy`` of other objects makes no file."""
WRITING = set("wax")


def makers(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that may make a file or a directory by the umask."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "O_CREAT":
            yield "O_CREAT"
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        owner = getattr(function, "value", None)
        owner = owner.id if isinstance(owner, ast.Name) else None
        if (name in MAKERS and (name != "copy" or owner in MODULES)) or (
            name in {"open", "fdopen"} and owner != "os" and is_writing(node)
        ):
            yield name
        elif (owner, name) == ("sqlite3", "connect"):
            yield "sqlite3.connect"


def is_writing(call: ast.Call) -> bool:
    """Whether an ``open`` may make a file, and not by the helper."""
    keywords = {each.arg: each.value for each in call.keywords}
    opener = keywords.get("opener")
    if isinstance(opener, ast.Name) and opener.id == "private_opener":
        return False
    modes = [*call.args[:2], *filter(None, [keywords.get("mode")])]
    texts = [each.value for each in modes if isinstance(each, ast.Constant)]
    return any(
        isinstance(text, str) and WRITING & set(text) and set(text) <= set("rwaxbt+")
        for text in texts
    )


def found(source: Source) -> set[str]:
    return set(makers(source.tree))


def test_files_are_made_by_the_helpers_only():
    everything = {
        each.name: found(each)
        for each in sources("broker", "storage", "coordinator", "protocol", "spark_connector")
        if each.name != HELPERS
    }
    made = {name: calls for name, calls in everything.items() if calls}
    assert made == ELSEWHERE, "use private_opener, make_private or make_private_directory"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("os.mkdir(path)", {"mkdir"}),
        ("os.makedirs(path, 0o755)", {"makedirs"}),
        ("Path(path).mkdir()", {"mkdir"}),
        ("open(path, 'wb')", {"open"}),
        ("open(path, mode='x')", {"open"}),
        ("path.open('a')", {"open"}),
        ("open(path, 'wb', opener=private_opener)", set()),
        ("open(path, 'wb', opener=other)", {"open"}),
        ("open(path, 'rb')", set()),
        ("open(path)", set()),
        ("os.open(path, os.O_RDWR | os.O_CREAT)", {"O_CREAT"}),
        ("shutil.copy(a, b)", {"copy"}),
        ("headers.copy()", set()),
        ("sqlite3.connect(path)", {"sqlite3.connect"}),
        ("path.write_text('')", {"write_text"}),
    ],
)
def test_calls_that_make_files_are_recognised(text, expected):
    assert set(makers(ast.parse(text))) == expected
