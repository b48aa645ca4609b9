"""The scenarios, by what they attack."""

from tests.attack.scenario import DirectoryScenario, Scenario
from tests.attack.scenarios import frames, http

ALL: tuple[Scenario | DirectoryScenario, ...] = (*frames.SCENARIOS, *http.SCENARIOS)
