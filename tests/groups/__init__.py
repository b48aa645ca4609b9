"""Groups of real clients under load: members and brokers die, nothing may be lost or go back.

The members are clients of ``tests/workload``, and two of Apache Kafka's tools; ``fleet.py`` starts,
pauses, kills and adds them; ``observer.py`` fetches the committed offsets all the time. The history
of all of them is checked by ``tests/history``.
"""
