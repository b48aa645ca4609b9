"""The scenarios, by what they attack."""

from tests.attack.scenario import DirectoryScenario, Scenario
from tests.attack.scenarios import frames

ALL: tuple[Scenario | DirectoryScenario, ...] = (*frames.SCENARIOS,)
