"""The scenarios, by what they attack."""

from tests.attack.scenario import DirectoryScenario, Scenario
from tests.attack.scenarios import (
    arrays,
    bombs,
    connections,
    damage,
    faults,
    frames,
    held,
    http,
    liars,
    readers,
    stalls,
)

ALL: tuple[Scenario | DirectoryScenario, ...] = (
    *frames.SCENARIOS,
    *connections.SCENARIOS,
    *held.SCENARIOS,
    *stalls.SCENARIOS,
    *arrays.SCENARIOS,
    *bombs.SCENARIOS,
    *readers.SCENARIOS,
    *http.SCENARIOS,
    *liars.SCENARIOS,
    *faults.SCENARIOS,
    *damage.SCENARIOS,
)
