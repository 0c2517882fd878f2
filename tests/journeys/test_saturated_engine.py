"""An engine that says that it has too much is given fewer calls at once, and more again when it has caught up."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.journeys.conftest import MODEL
from tests.support.crowd import call, crowd
from tests.support.gateway import Customer, Running, town, wait_for

ANSWER = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}'


@dataclass
class Engine:
    """Answers after a while; says of itself what it is told to say."""

    port: int = 0
    waiting: int = 0
    running: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def page(self, path: str) -> bytes:
        if path != "/metrics":
            return b""
        return f"vllm:num_requests_running 2\nvllm:num_requests_waiting {self.waiting}\n".encode()

    def serve(self) -> bytes:
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.1)
        with self.lock:
            self.running -= 1
        return ANSWER


@contextmanager
def an_engine() -> Iterator[Engine]:
    engine = Engine()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.say(engine.page(self.path))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.say(engine.serve())

        def say(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    engine.port = server.server_address[1]
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()


async def test_it_gets_as_many_as_it_runs_and_all_again_later(database_url: str, valkey_url: str, tmp_path: Path) -> None:
    with an_engine() as engine:
        entry = f'[[replica]]\nid = "a"\nmodel = "{MODEL}"\nengine = "vllm"\nurl = "http://127.0.0.1:{engine.port}"\nslots = 3\n'
        with town(database_url, valkey_url, tmp_path, entry) as faregate:
            gateway, customer = faregate.gateway(), faregate.key()
            assert await most_at_once(engine, gateway, customer) == 3
            engine.waiting = 5
            await asyncio.to_thread(wait_for, lambda: 'faregate_replica_cap{replica="a"} 2.0' in gateway.metrics(), 15)
            assert await most_at_once(engine, gateway, customer) == 2
            engine.waiting = 0
            await asyncio.to_thread(wait_for, lambda: 'faregate_replica_cap{replica="a"} 3.0' in gateway.metrics(), 15)
            assert await most_at_once(engine, gateway, customer) == 3


async def most_at_once(engine: Engine, gateway: Running, customer: Customer) -> int:
    engine.most = 0
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    assert (await call(gateway.port, customer, body)).status == 200
    replies = await crowd([gateway.port], customer, body, 9)
    assert {reply.status for reply in replies} == {200}
    return engine.most
