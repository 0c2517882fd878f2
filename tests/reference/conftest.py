"""The installation of the vectors' tests: it serves models of every kind."""

from tests.vectors.conftest import standing_engine as standing_engine
from tests.vectors.conftest import vector_town as vector_town
