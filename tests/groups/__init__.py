"""Groups of real clients under load: members and brokers die, nothing may be lost or go back.

`python -m tests.groups` is one member of one library, which writes down what it does; `fleet.py`
starts, pauses, kills and adds them; `observer.py` watches the committed offsets from outside;
`checker.py` judges what was written down.
"""
