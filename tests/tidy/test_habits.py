"""The sources for new contributors: pages, `make help`, the hooks before a commit, and CI."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution

import pytest
import yaml

from tests.tidy.source import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))

PHONY = re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
RULE = re.compile(
    r"^(?P<target>[a-z-]+):(?!=)(?P<needs>[^#\n]*)(## (?P<says>.+))?\n(?P<recipe>(\t.*\n)*)",
    re.MULTILINE,
)
RULES = {rule["target"]: rule for rule in RULE.finditer(MAKEFILE)}
LINK = re.compile(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)")
IN_CODE = re.compile(r"`([^`\s]+)`")


def prerequisites(target: str) -> list[str]:
    return RULES[target]["needs"].split()


# ---------------------------------------------------------------------------------------- make


def test_every_target_that_is_called_is_described():
    assert len(PHONY) > 20
    assert [target for target in PHONY if not RULES[target]["says"]] == []


def test_every_described_target_is_called_and_not_made():
    assert [target for target, rule in RULES.items() if rule["says"] and target not in PHONY] == []


def test_makes_list_finds_the_target_by_its_name():
    pattern = re.search(r"/(\^\S+:\.\*## )/", RULES["help"]["recipe"])[1]
    listed = [line for line in MAKEFILE.splitlines() if re.match(pattern, line)]
    assert [line.partition(":")[0] for line in listed] == PHONY


SOURCES_ONLY = {"check", "check-and-prepare", "compiled", "package"}
"""Parts of `make test` that start no broker as a process, or that of the wheel of the sources."""


def suites() -> set[str]:
    """Return the parts of `make test`, the targets that they call, and those that run at once."""
    (parts,) = re.findall(r"^PARTS := (.+)", MAKEFILE, re.MULTILINE)
    found = set()
    pending = parts.split()
    while pending:
        recipe = RULES[part := pending.pop()]["recipe"]
        both = re.search(r"\$\(call both,([\w-]+),([\w -]+)\)", recipe)
        pending += re.findall(r"\$\(MAKE\) --no-print-directory ([\w-]+)(?![\w/-])", recipe)
        found |= {both[1], *both[2].split()} if both else {part}
    return found


def test_make_test_runs_every_suite_with_processes_on_the_compiled_build():
    lines = MAKEFILE.replace("\\\n", " ")
    (listed,) = re.findall(r"^ON_COMPILED := (.+)", lines, re.MULTILINE)
    on_compiled = {*listed.split()}
    assert "\n$(ON_COMPILED): export BARNABAS_PACKAGES := $(CURDIR)/$(COMPILED)\n" in MAKEFILE
    assert suites() - SOURCES_ONLY - on_compiled == set()
    assert on_compiled - {*PHONY} == set()


# ----------------------------------------------------------------------------- before a commit


def hooks() -> list[dict]:
    return [hook for repository in HOOKS["repos"] for hook in repository["hooks"]]


def test_hooks_are_local():
    assert [repository["repo"] for repository in HOOKS["repos"]] == ["local"]
    assert {hook["language"] for hook in hooks()} == {"system"}


def test_hooks_do_what_make_check_does():
    assert [hook["entry"] for hook in hooks()] == [
        f"make {each}" for each in prerequisites("check")
    ]
    assert [hook["id"] for hook in hooks()] == prerequisites("check")
    for hook in hooks():
        # Make knows which files there are.
        assert not hook["pass_filenames"]
        assert hook["always_run"]


def commands_installed() -> set[str]:
    """Every command that the extras of $(VENV)/.dev bring."""
    extras = PROJECT["optional-dependencies"]
    names = {re.match(r"[\w-]+", each)[0] for each in extras["dev"] + extras["test"]}
    # From the list of files: a compiled tool is a command without being an entry point.
    return {
        file.name
        for name in names
        for file in distribution(name).files or ()
        if "bin" in file.parts
    }


def test_hooks_call_what_the_dev_environment_installs():
    variables = {"$(PYTEST)": "$(BIN)/pytest"}
    called = set()
    for hook in hooks():
        target = hook["id"]
        recipe = RULES[target]["recipe"]
        for variable, command in variables.items():
            recipe = recipe.replace(variable, command)
        used = set(re.findall(r"\$\(BIN\)/([\w-]+)", recipe))
        assert used, f"{target} calls no tool of .venv"
        assert "$(VENV)/.dev" in prerequisites(target)
        called |= used
    assert called - commands_installed() == {"python"}


# ------------------------------------------------------------------------------------------ CI


def claimed_versions() -> list[str]:
    """Return the versions of Python that the classifiers name."""
    classifiers = "\n".join(PROJECT["classifiers"])
    return re.findall(r"^Programming Language :: Python :: (3\.\d+)$", classifiers, re.MULTILINE)


def jobs() -> list[dict]:
    """Return the jobs of CI; tests/package/test_release.py has the rules of the release."""
    (path,) = [each for each in WORKFLOWS if each.name == "ci.yml"]
    return list(yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values())


def test_workflows_have_jobs():
    assert [path.suffix for path in WORKFLOWS] == [".yml"] * len(WORKFLOWS)
    assert jobs()


def test_ci_runs_what_everybody_runs_with_the_chosen_python():
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert re.search(r"^PYTHON \?=", MAKEFILE, re.MULTILINE), "the environment could not choose it"
    for job in jobs():
        assert [step["run"] for step in job["steps"] if "run" in step][-1] == ".ci/run"
        assert job["env"]["PYTHON"] == "python${{ matrix.python }}"
        assert "${{ matrix.python }}" in job["container"]["image"]
        assert 0 < job["timeout-minutes"] <= 360


def test_ci_must_pass_on_every_python_that_is_claimed():
    assert PROJECT["requires-python"] == f">={claimed_versions()[0]}"
    for job in jobs():
        matrix = job["strategy"]["matrix"]["include"]
        # Unquoted, 3.10 would be the number 3.1.
        assert all(isinstance(each["python"], str) for each in matrix)
        assert [each["python"] for each in matrix if not each["tried"]] == claimed_versions()
        assert job["continue-on-error"] == "${{ matrix.tried }}"


# --------------------------------------------------------------------------------------- pages


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    broken = []
    for link in LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            broken.append(link)
    assert broken == []


def anchors(text: str) -> set[str]:
    """Return the anchors that a forge gives the headings of a page, and the page's own."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    own = set(re.findall(r'<a id="([^"]+)"></a>', text))
    return own | {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    }


def test_the_readme_leads_to_the_pages_for_contributors():
    links = LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert {"CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"} <= set(links)


def test_the_page_for_contributors_names_what_there_is():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = {name for name in IN_CODE.findall(text) if "/" in name and not re.search(r"[$*]", name)}
    assert len(paths) > 30
    assert [name for name in sorted(paths) if not (ROOT / name).exists()] == []


def test_the_page_for_contributors_names_targets_that_there_are():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {
        word
        for command in re.findall(r"`make ([^`]+)`", text)
        for word in re.sub(r"\w+=.*", "", command).split()
    }
    assert named
    assert named - set(PHONY) == set()
