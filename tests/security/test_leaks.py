"""What must stay inside: keys, prompts, addresses of engines, the operators' pages."""

import time

import httpx2
import pytest

from tests.security.attacker import CHAT, chat, head, steered, talk
from tests.support.gateway import Customer, Running, Town, get

SECRET = "my-own-words-8f3a"


def post(gateway: Running, customer: Customer, body: bytes) -> httpx2.Response:
    return httpx2.post(gateway.url + CHAT, headers=customer.headers, content=body, timeout=10)


def test_neither_key_nor_prompt_is_in_the_log_whatever_goes_wrong(faregate: Town) -> None:
    gateway, customer = faregate.gateway(log_level="debug"), faregate.key()
    said = [{"role": "user", "content": SECRET}]
    bodies = [
        chat(messages=said),
        chat(messages=said, stream=True),
        chat(messages=said, model=SECRET),
        chat(messages=said, n=SECRET),
        chat(messages=[{"role": SECRET, "content": SECRET}]),
        b'{"' + SECRET.encode() + b'":1,"' + SECRET.encode() + b'":2}',
        SECRET.encode(),
        *(chat(messages=[*steered(**script), *said][::-1]) for script in ({"garbage": True}, {"die_after": 1})),
    ]
    for body in bodies:
        post(gateway, customer, body)
    talk(gateway, head(customer, f"x-{SECRET}: \0"))
    get(gateway.port, f"/v1/{SECRET}?key={customer.token}", customer.headers)
    gateway.stop()
    log = gateway.log.read_text()
    assert '"event":"call"' in log
    assert SECRET not in log
    assert customer.token not in log


def test_a_prompt_that_the_engine_quotes_in_its_refusal_is_not_in_the_log(faregate: Town) -> None:
    gateway, customer = faregate.gateway(), faregate.key()
    assert post(gateway, customer, chat(messages=steered(status=418, text=SECRET))).status_code == 400
    gateway.stop()
    assert SECRET not in gateway.log.read_text()


def engine_faults(gateway: Running) -> list[str]:
    return [line for line in gateway.metrics().splitlines() if line.startswith("faregate_engine_faults_total{")]


def test_a_clients_mistake_is_no_fault_of_the_engines(faregate: Town, gateway: Running) -> None:
    customer = faregate.key()
    before = engine_faults(gateway)
    post(gateway, customer, chat(messages=steered(status=400)))
    assert engine_faults(gateway) == before


def test_where_an_engine_listens_is_not_told(faregate: Town) -> None:
    """It was, in the words of a time-out."""
    gateway, customer = faregate.gateway(total_seconds=0.5), faregate.key()
    for script in ({"hang": True}, {"garbage": True}, {"die_after": 1}, {"status": 500}):
        answer = post(gateway, customer, chat(stream=True, messages=steered(**script)))
        assert "127.0.0.1" not in answer.text


def test_the_operators_pages_are_on_their_own_port_alone(gateway: Running) -> None:
    for path in ("/metrics", "/redoc", "/v1/../metrics", "/%6detrics", "//metrics"):
        assert get(gateway.port, path)[0] == 404, path
    assert get(gateway.port, "/ops") == (303, b"")  # the console's page of that name, which asks who is there
    assert get(gateway.ops_port, "/metrics")[0] == 200
    assert "reasons" not in get(gateway.port, "/readyz")[1].decode()


def test_one_customer_learns_nothing_of_another(faregate: Town, gateway: Running) -> None:
    rich, poor = faregate.key("enterprise", name="rich-secret-name"), faregate.key("free")
    post(gateway, rich, chat())
    time.sleep(0.1)
    page = get(gateway.port, "/v1/key", poor.headers)[1].decode()
    assert "rich-secret-name" not in page
    assert '"used":0' in page.replace(" ", "")
    for path in (f"/v1/key/{rich.key_id}", f"/v1/key?account={rich.account_id}", "/v1/keys", "/v1/accounts"):
        assert "rich-secret-name" not in get(gateway.port, path, poor.headers)[1].decode()


@pytest.mark.parametrize("part", [{"type": "prompt_embeds", "data": "AA"}, {"image_embeds": "AA", "type": "text", "text": "x"}])
def test_no_tensor_of_a_clients_gets_into_a_model(faregate: Town, gateway: Running, part: dict[str, str]) -> None:
    answer = post(gateway, faregate.key(), chat(messages=[{"role": "user", "content": [part]}]))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages[0].content[0]")
