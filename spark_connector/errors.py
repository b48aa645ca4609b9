"""Errors of a sink: one class for each that a user can act on.

The message is one sentence with the fault, its reason and the action to take. Spark wraps it in a
long report, so a reader must understand it without its context.
"""

from __future__ import annotations


class SinkError(Exception):
    """The sink cannot continue; stopping here has lost or duplicated no record."""


class WrongOption(SinkError):
    """An option is missing, unknown, or has a value that cannot work."""


class TopicMissing(SinkError):
    """A topic that the sink writes does not exist."""


class BrokerTooOld(SinkError):
    """The broker lacks a request without which there are no transactions."""


class BrokerUnreachable(SinkError):
    """Brokers returned nothing but retriable errors, or no response, until the time limit."""


class NotLetIn(BrokerUnreachable):
    """The brokers refuse connections with these settings for TLS and SASL."""


class NotAllowed(SinkError):
    """The client lacks a permission, so a retry does not help."""


class RecordTooLarge(SinkError):
    """The broker rejects a record batch of this size."""


class Fenced(SinkError):
    """Another driver of the same sink has started, or the transaction has timed out."""


class TransactionLost(SinkError):
    """The transaction can never be committed; its records stay invisible."""


class InDoubt(SinkError):
    """The result of a commit is unknown here; the next start of the query finds it out."""


class CheckpointMismatch(SinkError):
    """The checkpoint does not continue the batches that the sink has written."""


class CheckpointUnusable(SinkError):
    """The checkpoint's directory cannot be read or written."""


class Recreated(SinkError):
    """A topic or a cluster has another ID than the one in the checkpoint."""


class Overtaken(SinkError):
    """Another driver with the same checkpoint has finished this driver's first batch."""


class BatchInDoubt(SinkError):
    """A decided batch is only partly in the topic; a user must choose how to continue."""


class RowsMissing(SinkError):
    """Spark's Java process has not delivered all rows of a batch."""


class WrongRows(SinkError):
    """The columns, or the values of a row, cannot be written as records."""
