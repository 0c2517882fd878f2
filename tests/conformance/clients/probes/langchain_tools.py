"""LangChain: a tool's round trip and an answer held to a schema."""

import json
import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


asked = json.loads(os.environ["ASKED"])
model = ChatOpenAI(base_url=asked["base"], api_key=asked["key"], model=asked["model"], max_retries=0)
if asked["how"] == "schema":
    found = model.with_structured_output(Person).invoke(asked["prompt"])
    print(found.model_dump_json())
else:
    talk = [HumanMessage(asked["prompt"])]
    bound = model.bind_tools([get_weather])
    talk.append(bound.invoke(talk))
    results = [ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]) for call in talk[-1].tool_calls]
    print(bound.invoke([*talk, *results]).content)
