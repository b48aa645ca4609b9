"""One image for all tests, built from nothing but Debian's and Python's packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.image.container import Container
from tests.image.shared_image import SharedImage
from tests.image.tools import MissingTool

TIMEOUT_S = 300


def pytest_collection_modifyitems(items):
    """Limit the tests; what builds the image for the first of them has its own, longer limits."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S, func_only=True))


@pytest.fixture(scope="session")
def image(tmp_path_factory, worker_id):
    """Return the image, which the first of the workers builds for all of them."""
    base = tmp_path_factory.getbasetemp()
    shared = SharedImage((base if worker_id == "master" else base.parent) / "image")
    try:
        built = shared.take()
    except MissingTool as missing:
        pytest.fail(f"image-check: {missing}", pytrace=False)
    yield built
    shared.give_back()


@pytest.fixture
def container(image, tmp_path):
    """Start containers that end with the test: ``container(command=..., environment=...)``."""
    running = []

    def start(directory=None, **options):
        made = Container(image, directory or tmp_path / f"container{len(running)}", **options)
        running.append(made.__enter__())
        return made

    yield start
    for each in reversed(running):
        each.__exit__()
