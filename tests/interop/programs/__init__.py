"""Stream processors, frameworks and pipelines that copy a topic through kills: each record once.

``kinds.py`` has the programs, which are on systems of others. ``copies.py`` has their inputs and
their judge: ``barnabas prove`` kills each of them and the broker.
"""
