"""Repetition of requests while brokers restart and leaders move."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import ParamSpec, TypeVar

from barnabas.broker.admin.exchange import Exchange, Rejected
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.interruption import Wait
from barnabas.broker.client.deadline import Deadline
from barnabas.broker.client.errors import NotKafka, NotLetIn, Unreachable

P = ParamSpec("P")
T = TypeVar("T")


def patiently(cluster: Cluster, attempt: Callable[[], T], wait: Wait = nullcontext) -> T:
    """Return the result of ``attempt``, retrying while brokers restart and leaders move.

    Raises the error of the last attempt in time, and at once an error that a retry cannot correct.
    ``wait`` is the context of the pauses between two attempts.
    """
    deadline = Deadline(int(cluster.timeout_seconds * 1000))
    while True:
        try:
            return attempt()
        except (Unreachable, Rejected) as problem:
            if deadline.is_over or not may_pass(problem):
                raise
        cluster.close()
        with wait():
            deadline.pause()


def may_pass(problem: Exception) -> bool:
    """Whether another attempt may succeed: a broker that restarts, a leader that moved."""
    if isinstance(problem, Rejected):
        return problem.code.retriable
    return isinstance(problem, Unreachable) and not isinstance(problem, NotKafka | NotLetIn)


def repeat(
    cluster: Cluster,
    exchange: Callable[P, Exchange[T]],
    *arguments: P.args,
    **options: P.kwargs,
) -> T:
    """Return the result of an exchange, which begins again as ``patiently`` does."""
    return patiently(cluster, lambda: cluster.run(exchange(*arguments, **options)))
