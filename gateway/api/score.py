"""`/v1/score`: how well pairs of texts belong together, in vLLM's shape."""

from backends.fleet import Replica
from gateway.api.chunks import parse_answer
from gateway.api.dialect import Question, Whole
from gateway.api.endpoint import Asked, Body, Endpoint
from gateway.api.sse import StreamBroke
from gateway.api.whole_only import WholeOnly, is_number, listed, texts_in, tokens_of
from gateway.errors import Refusal

FIELDS = ("text_1", "text_2")
# vLLM's other names of the two; it reads the first pair that it finds, so two pairs would leave one unpriced.
OTHER_FIELDS = ("queries", "documents", "items", "data_1", "data_2")


def _pairs(body: Body) -> Asked:
    for field in OTHER_FIELDS:
        if field in body:
            raise Refusal(400, f"{field} is not read here; send text_1 and text_2.", param=field, code="invalid_value")
    ones, others = (texts_in(body, field) for field in FIELDS)
    if len(ones) not in (1, len(others)):
        raise Refusal(
            400,
            f"text_1 has {len(ones)} texts and text_2 {len(others)}; send one text_1, or as many as text_2 has.",
            param="text_1",
            code="invalid_value",
        )
    return Asked(prompts=1, items=len(others))


def _as_sent(body: Body, replica: Replica, stream: bool) -> None:
    """Nothing is changed but what all endpoints change."""


class Scores(WholeOnly):
    """One number a pair."""

    def whole(self, body: bytes, question: Question) -> Whole:
        parsed, given = parse_answer(body), question.body["text_2"]
        scores = listed(parsed, "data", 1 if isinstance(given, str) else len(given))
        if not all(is_number(item.get("score")) for item in scores):
            raise StreamBroke("the engine sent a score that is no number")
        return Whole(tokens_of(parsed.get("usage")), is_empty=False)


SCORE = Endpoint(
    path="/v1/score",
    name="score",
    dialect=Scores(),
    ask=_pairs,
    edit=_as_sent,
    input_field="text_2",
    kinds=frozenset({"rerank", "embedding"}),
    streams=False,
)
