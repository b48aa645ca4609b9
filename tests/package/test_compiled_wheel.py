"""The compiled wheels, for each Python of this machine, and the extras of the pure one."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from barnabas.broker.runtime.build import commit
from barnabas.broker.version import __version__
from tests.compiled.listed import compiled_modules
from tests.package.builds import build_compiled_wheel, build_sdist, run, sha256
from tests.package.installed import environment_with, serve_a_client
from tests.package.release import PLATFORM, interpreters, pure_wheel, repair
from tests.products import for_the_night

# A wheel takes 5 minutes of CPU time, and more where others compute beside it.
pytestmark = pytest.mark.timeout(3600)
INTERPRETERS = interpreters()
IMPORTS = {
    "objects": "import obstore; print(obstore.__name__)",
    "postgresql": "import psycopg; print(psycopg.pq.__impl__)",
    "security": "import jwt; print(jwt.__name__)",
    "spark": "import barnabas.spark, pyspark, pandas, pyarrow; print(pyspark.__name__)",
}
PRINTED = {
    "objects": "obstore\n",
    "postgresql": "binary\n",
    "security": "jwt\n",
    "spark": "pyspark\n",
}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build_sdist(tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def pure(sdist, tmp_path_factory):
    directory = tmp_path_factory.mktemp("pure")
    return pure_wheel(sdist, directory / "source", directory / "wheel")


@pytest.fixture(scope="module")
def compiled(sdist, tmp_path_factory):
    """Build a wheel of a Python once; a function of the Python's path."""
    built: dict[str, Path] = {}

    def build(python: str) -> Path:
        if python not in built:
            directory = tmp_path_factory.mktemp("compiled")
            wheel = build_compiled_wheel(directory / "build", sdist, python)
            (directory / "repaired").mkdir()
            built[python] = repair(wheel, directory / "repaired")
        return built[python]

    return build


@for_the_night(beside="tests/package/test_wheel.py::test_broker_of_the_wheel_keeps_records")
@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: Path(path).name)
def test_compiled_wheel_serves_a_client(python, compiled, tmp_path):
    wheel = compiled(python)
    assert wheel.name.endswith(f"-{PLATFORM}.whl")
    commands = environment_with(tmp_path / "environment", wheel, python=python)
    printed = run(commands / "barnabas", "--version", cwd=tmp_path)
    assert printed == f"barnabas {__version__} (compiled, commit {commit()})\n"
    assert " build=compiled " in serve_a_client(commands, tmp_path / "broker")


@for_the_night(beside="tests/package/test_wheel.py::test_broker_of_the_wheel_keeps_records")
def test_compiled_wheel_has_each_module_that_is_listed_for_mypyc(compiled):
    """A hook that does nothing would build a slow wheel without an error."""
    names = zipfile.ZipFile(compiled(INTERPRETERS[0])).namelist()
    found = {name.partition(".")[0].replace("/", ".") for name in names if name.endswith(".so")}
    assert {name.removesuffix(".__init__") for name in found} >= {*compiled_modules()}


@for_the_night(
    beside="tests/package/test_wheel.py::test_version_of_a_wheel_has_the_commit_of_the_checkout"
)
def test_two_builds_of_the_compiled_wheel_have_the_same_bytes(compiled, sdist, tmp_path):
    python = INTERPRETERS[0]
    second = build_compiled_wheel(tmp_path / "second" / "build", sdist, python)
    (tmp_path / "repaired").mkdir()
    assert sha256(repair(second, tmp_path / "repaired")) == sha256(compiled(python))


@for_the_night(beside="tests/package/test_wheel.py::test_broker_of_the_wheel_keeps_records")
@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: Path(path).name)
def test_pure_wheel_serves_a_client(python, pure, tmp_path):
    commands = environment_with(tmp_path / "environment", pure, python=python)
    assert " build=pure " in serve_a_client(commands, tmp_path / "broker")


@for_the_night(beside="tests/package/test_wheel.py::test_broker_of_the_wheel_keeps_records")
@pytest.mark.parametrize("extra", IMPORTS)
def test_extra_brings_what_it_is_for(extra, pure, tmp_path):
    commands = environment_with(tmp_path / "environment", f"{pure}[{extra}]")
    printed = run(commands / "python", "-c", IMPORTS[extra], cwd=tmp_path)
    assert printed == PRINTED[extra]
    assert " build=pure " in serve_a_client(commands, tmp_path / "broker")
