"""The bodies of `/v1/responses` and of Anthropic's `/v1/messages`."""

from gateway.reference.shapes import Schema, anything, either, flag, list_of, maybe, number, record, ref, text, whole

_ITEM = record(
    "A message (`role` and `content`), or an item of an earlier answer: a function call, its output, reasoning.",
    type=text("What it is; a message where it is left out."),
    role=text("Who speaks, of a message.", enum=["system", "developer", "user", "assistant"]),
    content=either("Text, or parts.", {"type": "string"}, list_of(anything("`input_text`, `input_image`, `output_text`."))),
    call_id=text("Of a function call and its output."),
    name=text("The function that is called."),
    arguments=text("Its arguments, JSON in a string."),
    output=either("What it gave.", {"type": "string"}, list_of(anything("A part."))),
)
_BLOCK = record(
    "Text, an image, a tool's call or result, a thought, or a document of text.",
    "type",
    type=text("What it is.", enum=["text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking", "document"]),
    text=text("Of `text`."),
    source=anything("Of `image` (`base64`, or `url` where the installation fetches) and `document` (`text`, `content`)."),
    id=text("Of `tool_use`."),
    name=text("Of `tool_use`."),
    input=anything("Of `tool_use`."),
    tool_use_id=text("Of `tool_result`."),
    thinking=text("Of `thinking`."),
    signature=text("Of `thinking`."),
)
_CONTENT = either("Text, or blocks.", {"type": "string"}, list_of(ref("ContentBlock")))
_MESSAGES_FIELDS: dict[str, Schema] = {
    "model": text("A model's id or alias."),
    "messages": list_of(
        record("One turn.", "role content", role=text("Who speaks.", enum=["user", "assistant", "system"]), content=_CONTENT),
        "The conversation so far.",
        minItems=1,
    ),
    "system": either("What holds for the whole conversation.", {"type": "string"}, list_of(anything("A `text` block."))),
    "tools": list_of(
        record(
            "Something that the model may ask you to do. Tools of Anthropic's own servers are refused.",
            "name input_schema",
            name=text("Its name.", pattern="^[A-Za-z0-9_-]{1,64}$"),
            description=text("When to call it."),
            input_schema=record("A JSON Schema.", "type", type=text("", const="object"), properties=anything("The arguments.")),
        )
    ),
    "tool_choice": record("Which tool is called.", "type", type=text("", enum=["auto", "any", "tool", "none"]), name=text("")),
    "thinking": anything("Whether a reasoning model may think first."),
}

SCHEMAS: dict[str, Schema] = {
    "ResponseItem": _ITEM,
    "ResponseRequest": record(
        "Stateless: the whole conversation is sent each time. `store` may be true, and nothing is stored; "
        "`previous_response_id`, `conversation`, `background` and `prompt` are refused.",
        "model input",
        model=text("A model's id or alias."),
        input=either(
            "Text, or the items of the conversation.",
            {"type": "string", "minLength": 1},
            list_of(ref("ResponseItem"), minItems=1),
        ),
        instructions=text("What holds for the whole conversation."),
        stream=flag("Whether the answer comes as server-sent events.", default=False),
        max_output_tokens=whole("The longest output, in tokens. Lowered to what the plan and the context leave.", minimum=1),
        temperature=number("0 is the likeliest token each time.", minimum=0, maximum=2),
        top_p=number("Only tokens within this share of the probability.", exclusiveMinimum=0, maximum=1),
        tools=list_of(
            record(
                "A function. Of Codex's other kinds, those that can't be had here are left out.",
                "type name",
                type=text("", enum=["function"]),
                name=text("Its name.", pattern="^[A-Za-z0-9_-]{1,64}$"),
                description=text("When to call it."),
                parameters=anything("A JSON Schema of its arguments."),
                strict=flag("Whether the arguments must keep to the schema."),
            )
        ),
        tool_choice=either("Which tool is called.", text("", enum=["none", "auto", "required"]), anything("One by name.")),
        text=record("How the text is formed.", format=anything("`text`, `json_object`, or `json_schema` with a `schema`.")),
        reasoning=record("For reasoning models.", effort=text("How long it may think."), summary=text("Accepted.")),
        store=flag("Accepted. The answer says false, which is so."),
        metadata=anything("Yours; passed on."),
    ),
    "Response": record(
        "A whole answer.",
        "id object status output",
        id=text("The engine's id of the answer."),
        object=text("The kind of this object.", const="response"),
        created_at=number("Unix time, in seconds."),
        model=text("The model, by the engine's name of it."),
        status=text("Whether it is whole.", enum=["completed", "incomplete", "failed", "in_progress"]),
        output=list_of(anything("A message, a function call, or reasoning."), "What was generated."),
        usage=maybe(anything("`input_tokens`, `output_tokens`, `total_tokens`, as the engine counted them.")),
        error=maybe(anything("`code` and `message`, of one that failed.")),
        incomplete_details=maybe(anything("`reason`, of one that was cut.")),
    ),
    "ResponseEvent": record(
        "One event of a stream, with its name in `event:` and in `type`. The last is `response.completed`, `.incomplete` or "
        "`.failed`.",
        "type",
        type=text("`response.created`, `response.output_text.delta`, `response.function_call_arguments.delta`, ..."),
    ),
    "ContentBlock": _BLOCK,
    "MessagesRequest": record(
        "Fields that are not listed here reach the engine as they are.",
        "model messages max_tokens",
        **_MESSAGES_FIELDS,
        max_tokens=whole("The longest output, in tokens. Lowered to what the plan and the context leave.", minimum=1),
        stream=flag("Whether the answer comes as server-sent events.", default=False),
        temperature=number("0 is the likeliest token each time.", minimum=0, maximum=1),
        top_p=number("Only tokens within this share of the probability.", exclusiveMinimum=0, maximum=1),
        top_k=whole("Only so many of the likeliest tokens.", minimum=1),
        stop_sequences=list_of({"type": "string"}, "Where generation stops."),
        metadata=anything("Yours; passed on."),
    ),
    "MessagesAnswer": record(
        "A whole answer.",
        "id type role content model stop_reason usage",
        id=text("The engine's id of the answer."),
        type=text("The kind of this object.", const="message"),
        role=text("Always `assistant`."),
        model=text("The model, by the engine's name of it."),
        content=list_of(anything("A block."), "What was generated."),
        stop_reason=maybe(text("Why it ended: `end_turn`, `max_tokens`, `stop_sequence`, `tool_use`.")),
        usage=record(
            "The engine's own count.",
            "input_tokens output_tokens",
            input_tokens=whole("Of the prompt."),
            output_tokens=whole("That were generated."),
        ),
    ),
    "MessagesEvent": record(
        "One event of a stream, with its name in `event:` and in `type`, from `message_start` to `message_stop`; `ping` between.",
        "type",
        type=text("`content_block_delta`, ..."),
    ),
    "TokenCountRequest": record(
        "As for `/v1/messages`, without what is only of an answer.", "model messages", **_MESSAGES_FIELDS
    ),
    "TokenCount": record("Counted by the model's own tokenizer.", "input_tokens", input_tokens=whole("Tokens of the prompt.")),
}
EXAMPLES = {
    "ResponseRequest": {"model": "smollm2-135m-instruct", "input": "Why is the sky blue?", "max_output_tokens": 200},
    "Response": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1796083200,
        "model": "smollm2-135m-instruct",
        "status": "completed",
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Air scatters blue light more than red.", "annotations": []}],
            }
        ],
        "usage": {"input_tokens": 13, "output_tokens": 9, "total_tokens": 22},
    },
    "ResponseEvent": {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": "Air "},
    "MessagesRequest": {
        "model": "smollm2-135m-instruct",
        "max_tokens": 200,
        "messages": [{"role": "user", "content": "Why is the sky blue?"}],
    },
    "MessagesAnswer": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "smollm2-135m-instruct",
        "content": [{"type": "text", "text": "Air scatters blue light more than red."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 13, "output_tokens": 9},
    },
    "MessagesEvent": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Air "}},
    "TokenCountRequest": {"model": "smollm2-135m-instruct", "messages": [{"role": "user", "content": "Why is the sky blue?"}]},
    "TokenCount": {"input_tokens": 13},
}
