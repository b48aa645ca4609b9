"""Cycles in directed graphs whose edges have labels."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

Node = TypeVar("Node")
Label = TypeVar("Label")


class Edge(NamedTuple, Generic[Node, Label]):
    """An edge between two nodes, and its reason."""

    source: Node
    target: Node
    label: Label


class Graph(Generic[Node, Label]):
    """Edges; of several between the same two nodes the first is kept."""

    def __init__(self) -> None:
        self._edges: dict[Node, dict[Node, Label]] = {}

    def add(self, source: Node, target: Node, label: Label) -> None:
        """Add an edge; one from a node to itself says nothing."""
        if source != target:
            self._edges.setdefault(source, {}).setdefault(target, label)

    def __or__(self, other: Graph[Node, Label]) -> Graph[Node, Label]:
        both: Graph[Node, Label] = Graph()
        for graph in (self, other):
            for source, targets in graph._edges.items():
                for target, label in targets.items():
                    both.add(source, target, label)
        return both

    def cycles(self) -> Iterator[list[Edge[Node, Label]]]:
        """Yield one short cycle of every part of the graph that has any."""
        for component in self.components():
            yield self._cycle_in(component)

    def components(self) -> Iterator[set[Node]]:
        """Yield the strongly connected components of more than one node."""
        yield from _Components(self._edges).find()

    def _cycle_in(self, component: set[Node]) -> list[Edge[Node, Label]]:
        """Return a shortest cycle through the first of its nodes, breadth first."""
        start = next(node for node in self._edges if node in component)
        came_from: dict[Node, Node] = {}
        waiting = deque([start])
        while True:
            node = waiting.popleft()
            for target in self._edges.get(node, {}):
                if target == start:
                    return self._path(came_from, start, node)
                if target in component and target not in came_from:
                    came_from[target] = node
                    waiting.append(target)

    def _path(
        self, came_from: dict[Node, Node], start: Node, last: Node
    ) -> list[Edge[Node, Label]]:
        nodes = [last]
        while nodes[-1] != start:
            nodes.append(came_from[nodes[-1]])
        nodes.reverse()
        return [
            Edge(source, target, self._edges[source][target])
            for source, target in zip(nodes, [*nodes[1:], start], strict=True)
        ]


class _Components(Generic[Node, Label]):
    """Tarjan's algorithm with a stack of its own: paths are longer than Python's recursion."""

    def __init__(self, edges: dict[Node, dict[Node, Label]]) -> None:
        self._edges = edges
        self._index: dict[Node, int] = {}
        self._low: dict[Node, int] = {}
        self._stack: list[Node] = []
        self._on_stack: dict[Node, int] = {}
        """Nodes without a component yet, with their place on the stack."""
        self._work: list[tuple[Node, Iterator[Node]]] = []

    def find(self) -> Iterator[set[Node]]:
        for root in self._edges:
            if root not in self._index:
                self._enter(root)
                while self._work:
                    component = self._step()
                    if len(component) > 1:
                        yield component

    def _enter(self, node: Node) -> None:
        self._index[node] = self._low[node] = len(self._index)
        self._on_stack[node] = len(self._stack)
        self._stack.append(node)
        self._work.append((node, iter(self._edges.get(node, {}))))

    def _step(self) -> set[Node]:
        """Enter a new node, or leave one; return its component if that is complete."""
        node, targets = self._work[-1]
        for target in targets:
            if target not in self._index:
                self._enter(target)
                return set()
            if target in self._on_stack:
                self._low[node] = min(self._low[node], self._index[target])
        self._work.pop()
        if self._work:
            above = self._work[-1][0]
            self._low[above] = min(self._low[above], self._low[node])
        if self._low[node] != self._index[node]:
            return set()
        component = self._stack[self._on_stack[node] :]
        del self._stack[len(self._stack) - len(component) :]
        for member in component:
            del self._on_stack[member]
        return set(component)
