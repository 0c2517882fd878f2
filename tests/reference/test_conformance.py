"""What is drawn from the OpenAPI document, good and bad, is answered as the document says: no 5xx, no undocumented answer."""

from copy import deepcopy
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gateway.reference.document import openapi
from tests.support.gateway import Town
from tests.vectors.conftest import CHAT, EMBEDDER, RERANKER

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# So many are drawn for each operation; thousands find nothing more, by hand.
EXAMPLES = 8


def served_document() -> dict[str, Any]:
    """With the models that are served here, so that most of what is drawn gets past the menu."""
    document = deepcopy(openapi())
    for name, schema in document["components"]["schemas"].items():
        if name.endswith("Request"):
            schema["properties"]["model"] = {"type": "string", "enum": [CHAT, EMBEDDER, RERANKER]}
    return document


API = schemathesis.openapi.from_dict(served_document())
OPERATIONS = {found.ok().label: found.ok() for found in API.get_all_operations() if isinstance(found, Ok)}
GOOD = [(label, GenerationMode.POSITIVE) for label in OPERATIONS]
# A page without parameters can't be asked in a wrong way.
BAD = [(label, GenerationMode.NEGATIVE) for label in OPERATIONS if label.startswith("POST ")]


@pytest.mark.parametrize(("operation", "mode"), [*GOOD, *BAD], ids=lambda value: getattr(value, "value", value))
def test_every_answer_is_a_documented_one(operation: str, mode: GenerationMode, vector_town: Town) -> None:
    customer = vector_town.customers[0] if vector_town.customers else vector_town.key()
    url, headers = vector_town.gateway().url, {"authorization": f"Bearer {customer.token}"}

    @given(case=OPERATIONS[operation].as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def ask(case: Case[Any]) -> None:
        case.call_and_validate(base_url=url, headers=headers, checks=CHECKS)

    ask()
