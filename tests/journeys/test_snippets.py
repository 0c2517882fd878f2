"""The two Python snippets that platforms like this one show first run as they are, but for base URL and key."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from models.catalogue import Catalogue
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Running, Town, town, wait_for
from tests.support.stream import settled

STREAM = """
from openai import OpenAI

client = OpenAI(base_url="{url}/v1", api_key="{key}")

stream = client.chat.completions.create(
    model="deepseek-r1-671b",
    messages=[{{"role": "user", "content": "Explain quantum computing in simple terms"}}],
    stream=True,
)

for chunk in stream:
    print(chunk.choices[0].delta.content, end="")
"""
WHOLE = """
from openai import OpenAI

client = OpenAI(base_url="{url}/v1", api_key="{key}")

response = client.chat.completions.create(
    model="deepseek-v3.2",
    messages=[
        {{"role": "system", "content": "You are a helpful assistant."}},
        {{"role": "user", "content": "Write a Python function that checks whether a number is prime."}},
    ],
    max_tokens=2048,
)

print(response.choices[0].message.content)
"""


@pytest.fixture
def installed(
    database_url: str, valkey_url: str, tmp_path: Path, stand_in_engine: Callable[..., StandInEngine]
) -> Iterator[tuple[Town, Running, list[StandInEngine]]]:
    engines = [stand_in_engine(model=Catalogue.load().resolve(name).id) for name in ("deepseek-r1-671b", "deepseek-v3.2")]
    fleet = "".join(engine.fleet_entry(engine.model) for engine in engines)
    with town(database_url, valkey_url, tmp_path, fleet) as built:
        yield built, built.gateway(), engines


def test_the_snippets_run_as_they_are(installed: tuple[Town, Running, list[StandInEngine]]) -> None:
    built, gateway, (r1, v32) = installed
    customer = built.key()
    printed = {}
    for snippet in (STREAM, WHOLE):
        done = subprocess.run(
            [sys.executable, "-c", snippet.format(url=gateway.url, key=customer.token)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed[snippet] = done.stdout
    assert printed == {STREAM: "tok tok tok ", WHOLE: "tok tok tok \n"}
    (streamed,), (whole,) = (engine.journal()["requests"] for engine in (r1, v32))
    assert streamed["body"]["stream_options"] == {"include_usage": True}
    assert [message["role"] for message in whole["body"]["messages"]] == ["system", "user"]
    assert whole["body"]["max_tokens"] == 2048
    wait_for(lambda: len(settled(built.redis_url, customer)) == 2)
    assert {event.verdict for event in settled(built.redis_url, customer)} == {"posted"}
