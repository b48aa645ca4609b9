"""Programs of users, tried for exactly once: load, faults, judge.

``run.py`` starts the broker and the program, ``schedule.py`` draws the faults from a seed,
``disturbance.py`` performs them, ``load.py`` writes the inputs, and ``judge.py`` compares the
outputs with them.
"""
