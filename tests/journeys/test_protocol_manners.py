"""What clients, browsers and probes do besides asking: odd paths, OPTIONS, HEAD, old and new HTTP, waiting to be asked."""

import gzip
import json
import re
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest
from backports import zstd

from tests.journeys.conftest import MODEL
from tests.security.attacker import CHAT, chat, connect, head, steered, talk
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Running, Town

ORIGIN = {"origin": "https://chat.example"}
UNREADABLE = [
    "/v1/../v1/chat/completions",
    "/v1/chat%2Fcompletions",
    "/v1%2fchat%2fcompletions",
    "/v1/chat/completions%00",
    "/v1/chat/completions\0",
    "/v1/%2e%2e/v1/models",
    "/v1/models/../key",
    "/v1\\models",
    "http://other/v1/chat/completions",
    "http://other/v1/models",
    "//other:80/v1/models",
    "localhost:8080/#@x",
    "v1/models",
    "*",
]


def status_of(answer: bytes) -> int:
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    assert found, answer[:80]
    return int(found[1])


def ask(gateway: Running, method: str, path: str, **headers: str) -> httpx2.Response:
    return httpx2.request(method, gateway.url + path, headers=headers, timeout=10)


@pytest.mark.parametrize(
    "path", ["//v1/chat/completions", "/v1/chat/completions/", "/v1/v1/chat/completions", "/chat/completions"]
)
def test_a_base_url_with_its_version_missing_doubled_or_after_two_slashes_works(shared: Town, path: str) -> None:
    gateway, customer = shared.gateway(), shared.key()
    answer = httpx2.post(gateway.url + path, content=chat(), headers=customer.headers)
    assert answer.status_code == 200
    assert answer.headers["x-faregate-fare"] == "1"
    assert httpx2.get(gateway.url + "/models/", headers=customer.headers).json()["data"][0]["id"] == MODEL
    assert httpx2.get(gateway.url + f"/models/{MODEL}/", headers=customer.headers).json()["id"] == MODEL


@pytest.mark.parametrize("target", UNREADABLE)
def test_a_target_that_two_readers_could_take_for_two_paths_is_served_as_none(
    shared: Town, standing_engine: StandInEngine, target: str
) -> None:
    """CVE-2026-49468: a Host or target of `localhost:4000/#@x` passed another gateway's check of the path."""
    customer, body = shared.key(), chat()
    for method in ("POST", "GET"):
        request = head(customer, f"content-length: {len(body)}", "connection: close", path=target) + body
        request = request.replace(b"POST", method.encode(), 1)
        assert status_of(talk(shared.gateway(), request)) in (400, 404, 405), method
    assert standing_engine.journal()["requests"] == []


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/v1/v1/chat/completions", "/v1/unheard-of"])
def test_a_preflight_is_204_without_a_key_and_allows_what_sdks_send(shared: Town, path: str) -> None:
    """dphnAI/sonar#434: 401; langgraph-openai-serve#9, canopy#284, RouteLLM#43: 405 or 404."""
    wanted = "authorization,content-type,x-stainless-os,x-stainless-retry-count,idempotency-key"
    asked = {"access-control-request-method": "POST", "access-control-request-headers": wanted}
    answer = ask(shared.gateway(), "OPTIONS", path, **ORIGIN, **asked)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == wanted
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert int(answer.headers["access-control-max-age"]) > 0
    assert "access-control-allow-credentials" not in answer.headers
    assert "content-length" not in answer.headers


def test_a_preflight_says_nothing_back_that_is_no_list_of_names(shared: Town) -> None:
    answer = ask(shared.gateway(), "OPTIONS", CHAT, **{"access-control-request-headers": 'x"<script>'})
    assert answer.status_code == 204
    assert "access-control-allow-headers" not in answer.headers


def test_every_answer_to_a_page_can_be_read_by_it(shared: Town) -> None:
    """open-webui#20604: the model list could not be read by a page."""
    gateway, customer = shared.gateway(), shared.key()
    whole = {**customer.headers, **ORIGIN}
    answers = [
        httpx2.post(gateway.url + CHAT, content=chat(), headers=whole),
        httpx2.post(gateway.url + CHAT, content=chat(stream=True), headers=whole),
        httpx2.post(gateway.url + CHAT, content=b"{", headers=whole),
        httpx2.post(gateway.url + CHAT, content=chat(), headers=ORIGIN),
        httpx2.get(gateway.url + "/v1/models", headers=whole),
        httpx2.get(gateway.url + "/v1/models", headers=ORIGIN),
        httpx2.get(gateway.url + "/v1/nowhere", headers=ORIGIN),
        httpx2.get(gateway.url + CHAT, headers=ORIGIN),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 400, 401, 200, 401, 404, 405]
    for answer in answers:
        assert answer.headers.get_list("access-control-allow-origin") == ["*"]
        assert answer.headers["access-control-expose-headers"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
    refused = talk(gateway, head(customer, "origin: https://chat.example", "transfer-encoding: gzip"))
    assert status_of(refused) == 400
    assert b"access-control-allow-origin: *" in refused


def test_who_names_no_origin_is_told_nothing_of_origins(shared: Town) -> None:
    answer = httpx2.post(shared.gateway().url + CHAT, content=chat(), headers=shared.key().headers)
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/v1/models", "/models", f"/v1/models/{MODEL}", "/v1/key", "/healthz", "/readyz"])
def test_head_is_answered_wherever_get_is_without_a_key(shared: Town, path: str) -> None:
    gateway = shared.gateway()
    assert ask(gateway, "HEAD", path).status_code == 200
    # Nothing follows the head that the next answer on the connection could be taken for.
    twice = talk(gateway, f"HEAD {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode(), b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
    assert twice.count(b"HTTP/1.1 200 OK") == 2
    assert twice.partition(b"\r\n\r\n")[2].startswith(b"HTTP/1.1 200 OK")


def test_a_wrong_method_names_the_right_one(shared: Town) -> None:
    gateway = shared.gateway()
    for method, path, allow in (("GET", CHAT, "POST"), ("HEAD", CHAT, "POST"), ("DELETE", "/v1/models", "GET, HEAD")):
        answer = ask(gateway, method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allow)


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
def test_a_compressed_request_reaches_the_engine_as_if_it_were_plain(
    shared: Town, standing_engine: StandInEngine, coding: str, pack: Any
) -> None:
    customer = shared.key()
    headers = {**customer.headers, "content-encoding": coding}
    answer = httpx2.post(shared.gateway().url + CHAT, content=pack(chat(top_k=3)), headers=headers)
    assert answer.status_code == 200
    [request] = standing_engine.journal()["requests"]
    assert request["body"]["top_k"] == 3
    assert "content-encoding" not in request["headers"]


def test_a_body_that_waits_to_be_asked_for_is_asked_for(shared: Town) -> None:
    gateway, customer, body = shared.gateway(), shared.key(), chat()
    with connect(gateway) as client:
        client.sendall(head(customer, f"content-length: {len(body)}", "expect: 100-continue"))
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["content-encoding: br", "content-length: 10"], 415),
        (["content-type: text/plain", "content-length: 10"], 415),
        (["content-length: 999999999"], 413),
    ],
)
def test_a_body_that_will_not_be_taken_is_not_asked_for(shared: Town, lines: list[str], status: int) -> None:
    with connect(shared.gateway()) as client:
        client.sendall(head(shared.key(), *lines, "expect: 100-continue"))
        answer = client.recv(65536)
    assert status_of(answer) == status
    assert b"100 Continue" not in answer


H2C = ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAA"]


@pytest.mark.parametrize(
    "cut", [0, 30, -90, -5], ids=["in one piece", "cut in its head", "cut before its body", "cut in its body"]
)
def test_javas_client_that_would_like_http2_is_answered_in_http1(shared: Town, cut: int) -> None:
    """The body that follows such a head was not read: the parser takes it for another protocol."""
    gateway, body = shared.gateway(), chat()
    request = head(shared.key(), *H2C, f"content-length: {len(body)}") + body
    answer = talk(gateway, *(part for part in (request[:cut], request[cut:]) if part))
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b'"content":"tok tok tok "' in answer


def test_what_follows_on_a_connection_that_asked_for_http2_is_served_too(shared: Town) -> None:
    gateway, customer, body = shared.gateway(), shared.key(), chat()
    chunked = head(customer, *H2C, "transfer-encoding: chunked") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    plain = head(customer, f"content-length: {len(body)}") + body
    answer = talk(gateway, chunked, plain, b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + "\r\n".join([*H2C, "", ""]).encode())
    assert answer.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("line", ["upgrade: websocket", "upgrade: tls/1.0"])
def test_another_protocol_is_refused_in_words(shared: Town, line: str) -> None:
    answer = talk(shared.gateway(), head(shared.key(), "connection: upgrade", line, "content-length: 2") + b"{}")
    assert status_of(answer) == 400
    assert b"HTTP/1.1 only" in answer


def test_http_1_0_gets_a_stream_without_chunks(shared: Town) -> None:
    customer, body = shared.key(), chat(stream=True, messages=steered(chunks=3))
    request = head(customer, f"content-length: {len(body)}").replace(b"HTTP/1.1", b"HTTP/1.0") + body
    answer = talk(shared.gateway(), request)
    begin, _, stream = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in begin
    assert b"connection: close" in begin
    assert stream.startswith(b"data: {")
    assert stream.endswith(b"data: [DONE]\n\n")
    frames = [json.loads(frame.removeprefix(b"data: ")) for frame in stream.split(b"\n\n")[:-2]]
    assert [frame["object"] for frame in frames] == ["chat.completion.chunk"] * len(frames)


def test_eight_megabytes_are_taken_and_a_body_beyond_the_limit_is_413_in_the_envelope(shared: Town) -> None:
    """llm-gateway#2126: 404 above 1 MB; agentgateway#2715, one-api#1016: no words; openai-python#3551: data URLs over 64 KB."""
    gateway, customer = shared.gateway(), shared.key()
    body = chat(messages=[{"role": "user", "content": "data:" + "A" * 8_000_000}])
    assert httpx2.post(gateway.url + CHAT, content=body, headers=customer.headers, timeout=20).status_code == 200
    answer = talk(gateway, head(customer, "content-length: 40000000"))
    assert status_of(answer) == 413
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_too_large"


def test_openais_headers_are_told_and_taken(shared: Town) -> None:
    gateway, customer = shared.gateway(), shared.key()
    sent = {**customer.headers, "openai-organization": "org-of-yours", "openai-project": "proj", "openai-beta": "x"}
    whole = httpx2.post(gateway.url + CHAT, content=chat(messages=steered(delay_ms=60)), headers=sent)
    assert whole.status_code == 200
    assert whole.headers["openai-version"] == "2020-10-01"
    assert whole.headers["openai-organization"] == str(customer.account_id)
    assert 60 <= int(whole.headers["openai-processing-ms"]) < 5000
    stream = httpx2.post(gateway.url + CHAT, content=chat(stream=True), headers=sent)
    assert (stream.headers["openai-version"], "openai-processing-ms" in stream.headers) == ("2020-10-01", False)
    assert httpx2.post(gateway.url + CHAT, content=b"{", headers=sent).headers["openai-version"] == "2020-10-01"


def test_a_429_says_when_in_seconds_and_in_milliseconds(shared: Town) -> None:
    """litellm#21553, api7/aisix#144, litellm-rs#833: without the bare name SDKs wait blindly."""
    gateway, customer = shared.gateway(), shared.key(requests_per_minute=2)
    answers = [httpx2.post(gateway.url + CHAT, content=chat(), headers=customer.headers) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    seconds, milliseconds = int(answers[2].headers["retry-after"]), int(answers[2].headers["retry-after-ms"])
    assert 1000 * (seconds - 1) < milliseconds <= 1000 * seconds


def test_what_several_proxies_say_in_lines_of_their_own_is_one_list(shared: Town) -> None:
    """The last line alone named a proxy as the caller."""
    gateway = shared.gateway(trusted_proxies="127.0.0.1,10.0.0.0/8")
    customer, body = shared.key(networks=(ip_network("203.0.113.0/24"),)), chat()
    for lines, status in (
        (["x-forwarded-for: 203.0.113.9", "x-forwarded-for: 10.0.0.5"], 200),
        (["x-forwarded-for: 198.51.100.7, 203.0.113.9", "x-forwarded-for: 10.0.0.5, 10.0.0.6"], 200),
        (["x-forwarded-for: 203.0.113.9", "x-forwarded-for: 198.51.100.7", "x-forwarded-for: 10.0.0.5"], 401),
    ):
        request = head(customer, *lines, f"content-length: {len(body)}", "connection: close") + body
        assert status_of(talk(gateway, request)) == status, lines
