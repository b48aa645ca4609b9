"""`python -m tests.postgresql.hurried_broker serve ...`: a broker whose upkeep hardly rests.

It packs small parts of logs, and deletes unused objects all the time, as a broker does in hours.
"""

from __future__ import annotations

import sys
from functools import partial

from barnabas.__main__ import main
from barnabas.broker.cluster.leading import object_upkeep, packer, upkeep
from barnabas.storage.replicated.segment_packing import PackLimits

LIMITS = PackLimits(segment_bytes=20_000, object_bytes_min=100, extents_max=5)


def hurry() -> None:
    """Replace the settings of all upkeep of brokers that start from now on."""
    hurried_packer = packer.PackerSettings(LIMITS, pack_ms=500, look_ms=100, retry_ms=200)
    packer.PackerSettings = lambda *_: hurried_packer  # type: ignore[assignment, misc]
    upkeep.UpkeepSettings = partial(  # type: ignore[assignment, misc]
        upkeep.UpkeepSettings, look_ms=100, garbage_ms=100, snapshot_ms=1000, pack_rest_ms=500
    )
    object_upkeep.ObjectUpkeepSettings = partial(  # type: ignore[assignment, misc]
        object_upkeep.ObjectUpkeepSettings, first_ms=20, delete_ms=20, guard_ms=1000
    )


if __name__ == "__main__":
    hurry()
    sys.exit(main())
