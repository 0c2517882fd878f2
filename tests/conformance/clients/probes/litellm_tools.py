"""LiteLLM: a tool's round trip and an answer held to a schema."""

import json
import os

from litellm import completion
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
asked = json.loads(os.environ["ASKED"])
talk = [{"role": "user", "content": asked["prompt"]}]
settings = {"model": f"openai/{asked['model']}", "api_base": asked["base"], "api_key": asked["key"], "max_retries": 0}
if asked["how"] == "schema":
    print(completion(messages=talk, response_format=Person, **settings).choices[0].message.content)
else:
    message = completion(messages=talk, tools=[WEATHER], **settings).choices[0].message
    talk.append(message.model_dump())
    for call in message.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        talk.append({"role": "tool", "tool_call_id": call.id, "content": f"rain in {city}"})
    print(completion(messages=talk, tools=[WEATHER], **settings).choices[0].message.content)
