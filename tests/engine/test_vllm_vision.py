"""A real vLLM with eyes, behind a gateway of its own: images as data and by address, counted alike, and one that is none."""

import base64
import http.server
import struct
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from openai import BadRequestError, OpenAI

from tests.engine.counted import Tokens, only_event_of
from tests.engine.place import Place
from tests.engine.vllm import SEEING, Vllm, running, seeing_engine
from tests.support.gateway import BuildTown, Customer, Town
from tests.support.services import scratch

pytestmark = pytest.mark.engine
# As tests/engine/vision.py makes it: 16 patches, four of them a token; between tokens that say where an image begins and ends.
TOKENS_PER_IMAGE = 4
TOKENS_AROUND_IT = 4


def png(red: int) -> bytes:
    """8 x 8 pixels of one colour."""
    rows = (b"\0" + bytes((red, 40, 90)) * 8) * 8
    parts = ((b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    chunks = [struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def as_data(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def asking(*urls: str) -> Any:
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, *parts]}]


@pytest.fixture(scope="module")
def eyes(place: Place) -> Iterator[Vllm]:
    with scratch("eyes") as folder, running(seeing_engine(place, folder)) as engine:
        yield engine


@pytest.fixture(scope="module")
def seeing(eyes: Vllm, build_town: BuildTown) -> Iterator[Town]:
    """It may fetch from this machine."""
    entry = f'[[replica]]\nid = "eyes"\nmodel = "{SEEING}"\nengine = "vllm"\nurl = "{eyes.url}"\nslots = 4\ncontext = 1024\n'
    with build_town(entry) as built:
        built.standing = built.gateway(fetch_allowed="127.0.0.0/8")
        built.worker()
        yield built


@pytest.fixture
def customer(seeing: Town) -> Customer:
    return seeing.key("pro")


@pytest.fixture
def client(seeing: Town, customer: Customer) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{seeing.gateway().url}/v1", api_key=customer.token, max_retries=0, timeout=120) as built:
        yield built


@pytest.fixture
def web() -> Iterator[str]:
    """The address of a picture."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(picture)))
            self.end_headers()
            self.wfile.write(picture)

        def log_message(self, *_: object) -> None:
            """Nothing: its prints are of no use to a test."""

    picture = png(200)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/a.png"
        server.shutdown()
        thread.join()


def tokens_of(client: OpenAI, *urls: str) -> Tokens:
    answer = client.chat.completions.create(model=SEEING, messages=asking(*urls), max_tokens=4, temperature=0)
    assert answer.usage is not None
    return Tokens(answer.usage.prompt_tokens, answer.usage.completion_tokens)


def test_an_image_is_seen_and_counted_alike_by_client_engine_and_event(
    seeing: Town, eyes: Vllm, client: OpenAI, customer: Customer
) -> None:
    before = Tokens.of_engine(eyes.url)
    told = tokens_of(client, as_data(png(10)))
    assert Tokens.of_engine(eyes.url).since(before) == told == Tokens.of_event(only_event_of(seeing, customer))


def test_each_image_is_so_many_tokens_of_the_prompt(client: OpenAI) -> None:
    blind = tokens_of(client).prompt
    one, two = tokens_of(client, as_data(png(20))).prompt, tokens_of(client, as_data(png(30)), as_data(png(40))).prompt
    assert TOKENS_PER_IMAGE < one - blind <= TOKENS_PER_IMAGE + TOKENS_AROUND_IT
    assert two - one >= TOKENS_PER_IMAGE


def test_an_image_by_address_is_seen_as_the_same_image_sent_as_data(client: OpenAI, web: str) -> None:
    fetched, sent = (
        client.chat.completions.create(model=SEEING, messages=asking(url), max_tokens=8, temperature=0, logprobs=True)
        for url in (web, as_data(png(200)))
    )
    assert fetched.choices[0].message.content == sent.choices[0].message.content
    assert fetched.usage is not None
    assert sent.usage is not None
    assert fetched.usage.prompt_tokens == sent.usage.prompt_tokens


def test_a_stream_about_an_image_is_relayed_and_counted(seeing: Town, client: OpenAI, customer: Customer) -> None:
    stream = client.chat.completions.create(
        model=SEEING,
        messages=asking(as_data(png(60))),
        max_tokens=4,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    *_, last = list(stream)
    assert last.usage is not None
    told = Tokens(last.usage.prompt_tokens, last.usage.completion_tokens)
    assert told.completion == 4
    assert told == Tokens.of_event(only_event_of(seeing, customer))


def test_what_is_no_image_is_the_engines_400_and_costs_nothing(seeing: Town, client: OpenAI, customer: Customer) -> None:
    with pytest.raises(BadRequestError):
        tokens_of(client, "data:image/png;base64," + base64.b64encode(b"no picture at all").decode())
    event = only_event_of(seeing, customer)
    assert (event.verdict, event.reason) == ("voided", "engine_refused")
