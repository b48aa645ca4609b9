"""The scenarios, by what they attack."""

from tests.attack.scenario import DirectoryScenario, Scenario
from tests.attack.scenarios import (
    arrays,
    bombs,
    connections,
    damage,
    faults,
    frames,
    handshakes,
    held,
    http,
    liars,
    logins,
    readers,
    record_readers,
    stalls,
)

ALL: tuple[Scenario | DirectoryScenario, ...] = (
    *frames.SCENARIOS,
    *connections.SCENARIOS,
    *logins.SCENARIOS,
    *handshakes.SCENARIOS,
    *held.SCENARIOS,
    *stalls.SCENARIOS,
    *arrays.SCENARIOS,
    *bombs.SCENARIOS,
    *readers.SCENARIOS,
    *http.SCENARIOS,
    *record_readers.SCENARIOS,
    *liars.SCENARIOS,
    *faults.SCENARIOS,
    *damage.SCENARIOS,
)
