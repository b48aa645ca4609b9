from barnabas.broker.cli.main import COMMANDS
from tests.real.cli.documentation import PAGE, quoted, renewed
from tests.real.cli.test_main import WITH_HELP


def test_help_texts_are_quoted_as_they_are():
    page = PAGE.read_text()
    assert renewed(page) == page, "run: python -m tests.real.cli.documentation"


def test_every_command_is_described():
    described = set(quoted(PAGE.read_text()))
    with_verbs = {
        ("topics",),
        ("groups",),
        ("transactions",),
        ("acls",),
        ("users",),
        ("quotas",),
        ("cluster",),
        ("records",),
        ("objects",),
        ("bench",),
    }
    assert described == set(WITH_HELP) - with_verbs
    assert {words[0] for words in described if words} == set(COMMANDS)
