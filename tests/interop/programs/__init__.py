"""Stream processors, frameworks and pipelines that copy a topic through kills: each record once.

``kinds.py`` has the programs, which are on systems that others wrote; ``process.py`` restarts one
that was killed; ``life.py`` kills it and the broker; ``copies.py`` gives its duties to the judge of
``tests/history``.
"""
