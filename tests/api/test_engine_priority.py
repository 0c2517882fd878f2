"""An engine that heeds priorities is told the class, by its own polarity; every other is told nothing."""

import orjson
import pytest

from backends.dedicated import Way
from backends.engines.kinds import ENGINE_KINDS
from backends.fleet import Replica
from gateway.api.call import read_call
from gateway.api.chat import CHAT
from gateway.api.edits import engine_body, engine_headers
from gateway.api.order import Order
from gateway.api.salts import Salts
from gateway.limits.policy import Numbers
from models.catalogue import Catalogue

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "priority": -5}


def sent(kind: str, service_class: str, *, has_priority: bool = True) -> tuple[object, object]:
    """The field and the header."""
    url = "http://127.0.0.1:1"
    replica = Replica.at(url, name="r", model="m", engine=ENGINE_KINDS[kind], slots=1, has_priority=has_priority)
    model = Catalogue.load().resolve("smollm2-135m-instruct")
    order = Order(
        model, [Way("m", [replica])], 1, None, None, account="a", key="k", service_class=service_class, numbers=Numbers()
    )
    body = orjson.loads(engine_body(read_call(CHAT, dict(BODY), 0), order, replica, Salts("pepper", shared=True)))
    return body.get("priority"), dict(engine_headers(order, replica)).get(b"x-vllm-priority")


@pytest.mark.parametrize(("kind", "premium", "free"), [("vllm", (20, b"20"), (40, b"40")), ("sglang", (40, None), (20, None))])
def test_the_class_decides_and_never_the_client(kind: str, premium: tuple[object, object], free: tuple[object, object]) -> None:
    assert (sent(kind, "premium"), sent(kind, "free")) == (premium, free)


def test_an_engine_that_was_not_started_so_is_told_nothing() -> None:
    """vLLM's field says that any number but 0 is refused without its priority scheduling."""
    assert sent("vllm", "premium", has_priority=False) == (None, None)
    assert sent("llamacpp", "premium") == (None, None)
