"""What can go wrong in a sink: one class for each that a user can do something about.

The message is one sentence of what, why and what to do. Spark wraps it in a long report, so it has
to be understood without anything around it.
"""

from __future__ import annotations


class SinkError(Exception):
    """The sink cannot go on; nothing was lost or doubled by stopping here."""


class WrongOption(SinkError):
    """An option is missing, unknown, or has a value that cannot work."""


class TopicMissing(SinkError):
    """A topic that is written to does not exist."""


class BrokerTooOld(SinkError):
    """The broker lacks a request without which there are no transactions."""


class BrokerUnreachable(SinkError):
    """No answer, or none but errors that pass, for as long as the sink was told to wait."""


class NotLetIn(BrokerUnreachable):
    """No connection comes about with these settings of TLS and login, however often it is tried."""


class NotAllowed(SinkError):
    """The broker refuses the request, however often it is repeated."""


class RecordTooLarge(SinkError):
    """The broker does not take a batch of this size."""


class Fenced(SinkError):
    """Another driver of the same sink has begun since, or the transaction ran out of its time."""


class TransactionLost(SinkError):
    """The transaction cannot be committed any more; none of it will be seen."""


class InDoubt(SinkError):
    """Whether the batch was committed is not known from here; starting again finds out."""


class CheckpointMismatch(SinkError):
    """The checkpoint does not continue what the sink has written."""


class CheckpointUnusable(SinkError):
    """The checkpoint's files cannot be read, or none can be written beside them."""


class Recreated(SinkError):
    """A topic or a cluster is another one than the checkpoint was written with."""


class Overtaken(SinkError):
    """Another driver with the same checkpoint has finished the batch that this one began with."""


class BatchInDoubt(SinkError):
    """A decided batch is in the topic in part; only a person can say how to go on."""


class RowsMissing(SinkError):
    """Spark's Java process has not handed over all rows of a batch."""


class WrongRows(SinkError):
    """The columns, or a row of them, cannot become records."""
