"""The scenarios, by what they attack."""

from tests.attack.scenario import DirectoryScenario, Scenario
from tests.attack.scenarios import (
    connections,
    damage,
    faults,
    frames,
    http,
    liars,
    readers,
    stalls,
)

ALL: tuple[Scenario | DirectoryScenario, ...] = (
    *frames.SCENARIOS,
    *connections.SCENARIOS,
    *stalls.SCENARIOS,
    *readers.SCENARIOS,
    *http.SCENARIOS,
    *liars.SCENARIOS,
    *faults.SCENARIOS,
    *damage.SCENARIOS,
)
