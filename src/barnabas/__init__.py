"""A durable broker that speaks Kafka's wire protocol, for exactly-once pipelines.

What programs may rely on: ``barnabas.testing`` (a broker inside a test), ``barnabas.spark``
(exactly-once pipelines), and the command ``barnabas``, which is ``python -m barnabas``, too. The
packages beside them are this version's own.
"""

from barnabas.broker.version import __version__

__all__ = ["__version__"]
