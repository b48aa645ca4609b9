"""The one way a counterpart says that it cannot be had; the message says how to get it."""

from barnabas.spark_connector.refusals import Refusal as MissingCounterpart

__all__ = ["MissingCounterpart"]
