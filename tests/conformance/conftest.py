"""The fixtures of the journeys: installations with a stand-in engine."""

from tests.journeys.conftest import engine as engine
from tests.journeys.conftest import faregate as faregate
from tests.journeys.conftest import shared as shared
from tests.journeys.conftest import standing_engine as standing_engine
from tests.journeys.conftest import standing_town as standing_town
