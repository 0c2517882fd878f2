"""One call through the whole gateway: answered, receipted, settled; and every other way out."""

from openai import OpenAI

from tests.journeys.conftest import MODEL
from tests.support.engine_fixture import StandInEngine
from tests.support.gateway import Town


def test_the_openai_sdk_streams_and_does_not_stream(faregate: Town, engine: StandInEngine) -> None:
    gateway = faregate.gateway()
    client = OpenAI(base_url=f"{gateway.url}/v1", api_key=faregate.key("free").token)
    whole = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
    assert whole.choices[0].message.content == "tok tok tok "
    stream = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "tok tok tok "
    client.close()
