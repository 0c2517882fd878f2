"""OpenAI Agents SDK, on both of its APIs: a tool's round trip and an answer held to a schema."""

import json
import os

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


asked = json.loads(os.environ["ASKED"])
set_tracing_disabled(True)
client = AsyncOpenAI(base_url=asked["base"], api_key=asked["key"], max_retries=0)
kind = OpenAIChatCompletionsModel if asked["api"] == "chat" else OpenAIResponsesModel
model = kind(model=asked["model"], openai_client=client)
if asked["how"] == "schema":
    agent = Agent(name="Clerk", model=model, output_type=Person)
    print(Runner.run_sync(agent, asked["prompt"]).final_output.model_dump_json())
else:
    agent = Agent(name="Forecaster", model=model, tools=[get_weather])
    print(Runner.run_sync(agent, asked["prompt"]).final_output)
