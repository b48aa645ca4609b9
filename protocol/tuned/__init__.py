"""Hand-tuned codecs for the commonest shapes of the hottest messages.

Each module takes the place of generated functions in an Api and leaves every other shape to them,
so both must agree on every message; ``tests/protocol/test_tuned.py`` holds them to it. A generated
module that has a tuned one imports it at its end, so no other module needs to.
"""
