"""Every refusal of storage has an error code."""

import pytest

from barnabas.broker.api.storage_errors import error_code_of
from barnabas.storage import errors


def refusals() -> list[type[errors.Rejected]]:
    found: list[type[errors.Rejected]] = []
    to_visit = [errors.Rejected]
    while to_visit:
        for each in to_visit.pop().__subclasses__():
            found.append(each)
            to_visit.append(each)
    return found


@pytest.mark.parametrize("refusal", refusals())
def test_has_an_error_code(refusal):
    assert error_code_of(refusal("reason")) > 0


def test_storage_has_refusals():
    assert len(refusals()) >= 11
