"""One real completion, asked for like any client would."""

import http.client
import time
from dataclasses import dataclass

from gateway.local.ask import get, post
from gateway.local.process import DidNotStart


@dataclass(frozen=True)
class Proof:
    """`answer` is None when the demo account may not ask now (its quota of today is used up) or has no model to ask."""

    model: str
    answer: str | None
    why_not: str = ""
    seconds: float = 0.0


def prove(port: int, key: str) -> Proof:
    """It costs the demo account one fare. Raises: DidNotStart, when the gateway doesn't answer as it must."""
    begun = time.monotonic()
    try:
        status, models = get(port, "/v1/models", key=key)
        if status != 200:
            raise DidNotStart(f"GET /v1/models answered {status}: {_message(models)}")
        if not models["data"]:
            return Proof("", None, "no model of the fleet is in the demo account's plan")
        model = str(models["data"][0]["id"])
        question = {
            "model": model,
            "messages": [{"role": "user", "content": "Say hello in one short sentence."}],
            "max_tokens": 24,
        }
        status, body = post(port, "/v1/chat/completions", question, key=key)
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        raise DidNotStart(f"the gateway started but did not answer a call: {error!r}") from error
    if status == 429:
        return Proof(model, None, _message(body))
    if status != 200:
        raise DidNotStart(f"the first completion was answered with {status}: {_message(body)}")
    return Proof(model, str(body["choices"][0]["message"]["content"]).strip(), seconds=time.monotonic() - begun)


def _message(body: dict[str, object]) -> str:
    error = body.get("error")
    return str(error.get("message")) if isinstance(error, dict) else str(body)[:300]
