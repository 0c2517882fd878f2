"""The bare pass-through: raw ASGI and the engine client, governing nothing; what governing costs is measured by it."""

import argparse
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

from backends.client import EngineClient
from backends.engines.kinds import ENGINE_KINDS
from backends.fleet import Replica

Message = MutableMapping[str, Any]
_KEPT = (b"content-type", b"content-length")


class PassThrough:
    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._client: EngineClient | None = None

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        assert scope["type"] == "http"
        if self._client is None:
            self._client = EngineClient()
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        with self._client.open(self._replica, scope["path"], body, [(b"content-type", b"application/json")]) as answer:
            await answer.start()
            headers = [(name, value) for name, value in answer.headers.items() if name in _KEPT]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            while data := await answer.read():
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--engine", required=True)
    options = parser.parse_args()
    replica = Replica.at(options.engine, name="bench", model="bench", engine=ENGINE_KINDS["vllm"], slots=4096)
    uvicorn.run(
        PassThrough(replica), port=options.port, loop="uvloop", http="httptools", lifespan="off", access_log=False,
        log_level="warning",
    )  # fmt: skip
