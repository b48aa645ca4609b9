"""The picture of the demonstration: where in the input there are copies, and where the kills."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from tests.interop.demo_kills import BROKER, DRIVER, WORKERS, Kill
from tests.interop.demo_payments import Copies

BINS = 250
COLOURS = {DRIVER: "tab:red", WORKERS: "tab:orange", BROKER: "tab:purple"}


def plot(
    path: Path, title: str, per_trigger: int, found: dict[str, Copies], kills: dict[str, list[Kill]]
) -> None:
    """Draw one row for each sink, all on one scale."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, rows = plt.subplots(
        len(found), 1, figsize=(10, 1.2 + 2.2 * len(found)), sharex=True, sharey=True, squeeze=False
    )
    for (axes,), (sink, copies) in zip(rows, found.items(), strict=True):
        movements = len(copies.counts)
        edges = np.linspace(0, movements, BINS + 1).astype(np.int64)
        for counted, colour, label in (
            (copies.by_movement_beyond_one, "tab:blue", "written again"),
            (-(copies.counts == 0).astype(np.int64), "black", "lost"),
        ):
            heights = np.add.reduceat(counted, np.minimum(edges[:-1], movements - 1)) / 1000
            axes.bar(
                edges[:-1] / 2e6,
                heights,
                width=movements / BINS / 2e6,
                align="edge",
                color=colour,
                label=label,
            )
        _mark(axes, per_trigger, kills[sink])
        axes.set_title(
            f"{sink}: {copies.duplicates:,} written again, {copies.losses:,} lost of {movements:,}",
            fontsize=10,
            loc="left",
        )
        axes.set_ylabel("thousand results")
        axes.axhline(0, color="grey", linewidth=0.8)
    rows[-1][0].legend(loc="upper right", fontsize=8, ncols=5)
    rows[-1][0].set_xlabel("place in the input, million payments")
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _mark(axes, per_trigger: int, kills: list[Kill]) -> None:
    seen = set()
    for kill in kills:
        axes.axvline(
            (kill.batch + kill.part) * per_trigger / 1e6,
            color=COLOURS[kill.kind],
            linestyle=":",
            linewidth=1.2,
            label=None if kill.kind in seen else f"{kill.kind} killed",
        )
        seen.add(kill.kind)
