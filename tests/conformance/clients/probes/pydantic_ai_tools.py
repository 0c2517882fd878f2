"""Pydantic AI: a tool's round trip and an answer held to a schema."""

import json
import os

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    name: str
    age: int


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


asked = json.loads(os.environ["ASKED"])
model = OpenAIChatModel(asked["model"], provider=OpenAIProvider(base_url=asked["base"], api_key=asked["key"]))
if asked["how"] == "schema":
    print(Agent(model, output_type=NativeOutput(Person)).run_sync(asked["prompt"]).output.model_dump_json())
else:
    print(Agent(model, tools=[get_weather]).run_sync(asked["prompt"]).output)
