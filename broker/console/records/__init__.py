"""Records in the console: read beside the loop, decoded, searched, with the state of each.

``standing.py`` says what is committed; ``pieces.py`` reads, ``examining.py`` looks at what was
read, ``scan.py`` puts partitions in one order; ``pages.py`` answers.
"""
