"""One real completion, asked for like any client would, and its line in the ledger."""

import http.client
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from billing.conninfo import conninfo
from gateway.local.ask import Reply, get, post
from gateway.local.process import DidNotStart, last_lines, pause

# The worker reads an idle stream several times a second.
LEDGER_SECONDS = 10.0


@dataclass(frozen=True)
class Proof:
    """`answer` is None when the demo account may not ask now (its quota of today is used up) or has no model to ask."""

    model: str
    answer: str | None
    why_not: str = ""
    seconds: float = 0.0
    request_id: str = ""


def prove(port: int, key: str, log: Path) -> Proof:
    """It costs the demo account one fare. Raises: DidNotStart, when the gateway doesn't answer as it must."""
    begun = time.monotonic()
    try:
        models = get(port, "/v1/models", key=key)
        if models.status != 200:
            raise DidNotStart(f"GET /v1/models was answered with {models.status}: {_message(models)}")
        if not models.body["data"]:
            return Proof("", None, "no model of the fleet is in the demo account's plan")
        model = str(models.body["data"][0]["id"])
        question = {
            "model": model,
            "messages": [{"role": "user", "content": "Say hello in one short sentence."}],
            "max_tokens": 24,
        }
        reply = post(port, "/v1/chat/completions", question, key=key)
        if reply.status == 429:
            return Proof(model, None, _message(reply))
        if reply.status != 200:
            raise DidNotStart(f"the first completion was answered with {reply.status}: {_message(reply)}\n{last_lines(log, 5)}")
        answer = str(reply.body["choices"][0]["message"]["content"]).strip()
        return Proof(model, answer, seconds=time.monotonic() - begun, request_id=reply.headers["x-request-id"])
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        raise DidNotStart(f"the gateway started but did not answer a call: {error!r}") from error


def await_ledger(database_url: str, request_id: str, log: Path) -> None:
    """Until the worker has written the call's row. Raises: DidNotStart, also when the row doesn't say `posted`."""
    deadline = time.monotonic() + LEDGER_SECONDS
    with psycopg.connect(conninfo(database_url), autocommit=True, connect_timeout=5) as connection:
        while time.monotonic() < deadline:
            row = connection.execute("SELECT verdict FROM requests WHERE id = %s", [request_id]).fetchone()
            if row is not None and row[0] == "posted":
                return
            if row is not None:
                raise DidNotStart(f"the completion is in the ledger as {row[0]!r}, not as posted")
            pause(0.05)
    raise DidNotStart(
        f"the completion was not in the ledger within {LEDGER_SECONDS:.0f} s; the worker's last lines:\n{last_lines(log)}"
    )


def _message(reply: Reply) -> str:
    error = reply.body.get("error")
    return str(error.get("message")) if isinstance(error, dict) else str(reply.body)[:300]
