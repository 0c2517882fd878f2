"""An image by address reaches the engine as data, fetched before a slot is taken; what can not be fetched costs nothing."""

import base64
import contextlib
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.fetch.host import PNG
from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine, start_stand_in_engine
from tests.support.gateway import BuildTown, Customer, Running, Town, wait_for
from tests.support.stream import open_holds, settled, taken_slots

AS_DATA = "data:image/png;base64," + base64.b64encode(PNG).decode()


# It has eyes, which the model of other journeys has not.
SEEING = "gemma-4-12b-it"


@pytest.fixture(scope="module")
def engine() -> Iterator[StandInEngine]:
    started = start_stand_in_engine(model=SEEING)
    yield started
    started.kill()


@pytest.fixture(scope="module")
def installed(build_town: BuildTown, engine: StandInEngine) -> Iterator[tuple[Town, Running]]:
    """One gateway for all: it may fetch from this machine, and not for long."""
    with build_town(engine.fleet_entry() + engine.fleet_entry("blind").replace(SEEING, MODEL)) as built:
        yield built, built.gateway(fetch_allowed="127.0.0.0/8", fetch_seconds=1, commit_seconds=0.1)


class Web(http.server.ThreadingHTTPServer):
    """`/a.png` is an image, `/slow` one that comes when `release` is set; everything else is not there."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.asked: list[str] = []
        self.release = threading.Event()

    def url(self, path: str = "/a.png") -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class _Page(http.server.BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path == "/slow":
            self.server.release.wait(10)
        body = PNG if self.path in ("/a.png", "/slow") else b""
        with contextlib.suppress(ConnectionError):  # who asked has left meanwhile
            self.send_response(200 if body else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: its prints are of no use to a test."""


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


def image(url: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def chat(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": SEEING, "messages": [{"role": "user", "content": [{"type": "text", "text": "what?"}, *parts]}], **fields}


def post(gateway: Running, customer: Customer, body: dict[str, Any]) -> httpx2.Response:
    return httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, headers=customer.headers)


def test_images_by_address_become_data_and_each_address_is_asked_once(
    installed: tuple[Town, Running], engine: StandInEngine, web: Web
) -> None:
    (built, gateway), pro = installed, installed[0].key("pro")
    plain = {"type": "input_image", "image_url": web.url()}
    answer = post(gateway, pro, chat(image(web.url(), detail="low"), plain, image(AS_DATA)))
    assert answer.status_code == 200, answer.text
    assert web.asked == ["/a.png"]
    _, *parts = engine.journal()["requests"][-1]["body"]["messages"][0]["content"]
    assert parts == [image(AS_DATA, detail="low"), {"type": "input_image", "image_url": AS_DATA}, image(AS_DATA)]
    wait_for(lambda: len(settled(built.redis_url, pro)) == 1)
    assert settled(built.redis_url, pro)[0].verdict == "posted"


def test_no_slot_is_held_while_we_fetch_and_a_hang_up_ends_it(
    installed: tuple[Town, Running], engine: StandInEngine, web: Web
) -> None:
    (built, gateway), pro = installed, installed[0].key("pro")
    engine.reset_journal()
    body = json.dumps(chat(image(web.url("/slow")), stream=True))
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as client:
        head = f"authorization: Bearer {pro.token}\r\ncontent-length: {len(body)}\r\n\r\n"
        client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{head}{body}".encode())
        wait_for(lambda: web.asked == ["/slow"])
        assert open_holds(built.redis_url) == 1
        assert taken_slots(built.redis_url) == 0
    wait_for(lambda: open_holds(built.redis_url) == 0)
    assert [event.reason for event in settled(built.redis_url, pro)] == ["left_before_output"]
    assert engine.journal()["requests"] == []


def test_what_can_not_be_fetched_is_a_400_that_names_the_part_and_costs_nothing(
    installed: tuple[Town, Running], engine: StandInEngine, web: Web
) -> None:
    """With a status of its own even where a stream that waits would have been answered 200 by then."""
    (built, gateway), pro = installed, installed[0].key("pro")
    engine.reset_journal()
    cases = [
        (web.url("/no.png"), "status 404"),
        (web.url("/slow"), "within 1 s"),
        ("http://169.254.169.254/latest/meta-data/iam", "public address"),
        ("http://[::ffff:10.0.0.1]/a.png", "public address"),
        ("http://no-such-host.invalid/a.png", "public address"),
        ("http://2130706433/a.png", "four decimal numbers"),
        ("https://user:secret@127.0.0.1/a.png", "without a user name"),
    ]
    for url, words in cases:
        answer = post(gateway, pro, chat(image(url), stream=True))
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "image_not_fetched"), url
        assert error["param"] == "messages[0].content[1].image_url"
        assert words in error["message"]
        assert "Nothing was billed" in error["message"]
    wait_for(lambda: len(settled(built.redis_url, pro)) == len(cases))
    assert {(event.verdict, event.reason) for event in settled(built.redis_url, pro)} == {("voided", "client_error")}
    assert engine.journal()["requests"] == []
    assert "secret" not in gateway.log.read_text()


def test_a_plan_counts_them_before_anything_is_fetched(installed: tuple[Town, Running], web: Web) -> None:
    (built, gateway), free = installed, installed[0].key("free")
    answer = post(gateway, free, chat(image(web.url()), image(web.url("/b.png")), model=MODEL))
    assert answer.json()["error"]["code"] == "over_plan_limit"
    assert web.asked == []
    assert not settled(built.redis_url, free)


def test_a_model_without_eyes_refuses_them_before_anything_is_fetched(installed: tuple[Town, Running], web: Web) -> None:
    """llama.cpp answers 500 to an image, as if it were its own fault."""
    (built, gateway), pro = installed, installed[0].key("pro")
    answer = post(gateway, pro, chat(image(web.url()), model=MODEL))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "model_without_vision")
    assert web.asked == []
    assert not settled(built.redis_url, pro)


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"type": "video_url", "video_url": {"url": "https://a.example/x.mp4"}}, "video_url"),
        ({"type": "audio_url", "audio_url": {"url": "https://a.example/x.wav"}}, "audio_url"),
        ({"type": "image", "image": "https://a.example/x.png"}, "image"),
        (image("file:///etc/passwd"), "image_url"),
        (image("//a.example/x.png"), "image_url"),
        (image({"url": "https://a.example/x.png"}), "image_url"),
    ],
)
def test_other_addresses_are_refused_before_the_hold(installed: tuple[Town, Running], part: dict[str, Any], param: str) -> None:
    (built, gateway), pro = installed, installed[0].key("pro")
    error = post(gateway, pro, chat(part)).json()["error"]
    assert (error["param"], error["code"]) == (f"messages[0].content[1].{param}", "invalid_value")
    assert not settled(built.redis_url, pro)
