"""Stream processors, frameworks and pipelines that copy a topic through kills: each record once.

``kinds.py`` has the programs, which are on systems that others wrote; ``life.py`` kills one and the
broker; ``copies.py`` gives its duties to the judge of ``tests/history``.
"""
