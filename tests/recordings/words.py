"""What the recorded calls say: models, short prompts, tools in each surface's shape, schemas, and text that forces an output."""

from typing import Any

MODEL = "smollm2-135m-instruct"
VECTORS = "all-minilm-l6-v2"
HELLO = "Say hello."
WEATHER = "What is the weather in Paris?"
CALL_ID = "call_0a1b2c3d4e5f60718"
# More tokens than any context here: about three for each word.
TOO_LONG = "one two three four five six seven eight nine ten " * 1200
CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "London"]}}, "required": ["city"]}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "enum": ["Ann", "Bob"]}, "age": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
NOTHING = {"type": "object", "properties": {}}
# A small model seldom calls a tool by itself. vLLM holds it to this text, and its tool parser reads it as it would any other.
_ONE_CALL = r'<tool_call>\n\{"name": "get_weather", "arguments": \{"city": "Paris"\}\}\n</tool_call>'
ONE_CALL = {"structured_outputs": {"regex": _ONE_CALL}}
WORDS_AND_CALL = {"structured_outputs": {"regex": r"I will look\. " + _ONE_CALL}}
TWO_CALLS = {
    "structured_outputs": {
        "regex": _ONE_CALL + r'\n<tool_call>\n\{"name": "get_weather", "arguments": \{"city": "London"\}\}\n</tool_call>'
    }
}
EMPTY_CALL = {"structured_outputs": {"regex": r'<tool_call>\n\{"name": "get_time", "arguments": \{\}\}\n</tool_call>'}}
BILLING_LINE = "x-anthropic-billing-header: cc_version=2.1.160.1a2; cc_entrypoint=cli; cch=8f3a1;"


def says(content: Any = HELLO, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


def chat_tool(name: str = "get_weather", parameters: Any = CITY) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": f"{name} of a city", "parameters": parameters}}


def response_tool(name: str = "get_weather", parameters: Any = CITY) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": f"{name} of a city", "parameters": parameters, "strict": False}


def message_tool(name: str = "get_weather", schema: Any = CITY) -> dict[str, Any]:
    return {"name": name, "description": f"{name} of a city", "input_schema": schema}
