"""LlamaIndex: a tool's round trip and an answer held to a schema."""

import asyncio
import json
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


asked = json.loads(os.environ["ASKED"])
llm = OpenAILike(
    api_base=asked["base"], api_key=asked["key"], model=asked["model"], is_chat_model=True, is_function_calling_model=True,
    should_use_structured_outputs=True, max_retries=0,
)  # fmt: skip


async def forecast() -> None:
    print(await FunctionAgent(tools=[get_weather], llm=llm).run(user_msg=asked["prompt"]))


if asked["how"] == "schema":
    print(llm.as_structured_llm(Person).complete(asked["prompt"]).text)
else:
    asyncio.run(forecast())
