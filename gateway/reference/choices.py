"""The bodies of chat and text completions."""

from gateway.reference.shapes import Schema, anything, either, flag, list_of, maybe, number, record, ref, text, whole

_STOP = either(
    "Where generation stops; the words themselves are not returned.",
    {"type": "string"},
    list_of({"type": "string"}, maxItems=4),
)
_SAMPLING: dict[str, Schema] = {
    "stream": flag("Whether the answer comes as server-sent events.", default=False),
    "stream_options": record(
        "Only with `stream`.", include_usage=flag("A last chunk, with empty `choices`, tells the usage.", default=False)
    ),
    "n": whole("How many answers. The fare counts each.", minimum=1, default=1),
    "max_tokens": whole("The longest output, in tokens. Lowered to what the plan and the context leave.", minimum=1),
    "temperature": number("0 is the likeliest token each time.", minimum=0, maximum=2),
    "top_p": number("Only tokens within this share of the probability.", exclusiveMinimum=0, maximum=1),
    "seed": whole("The same seed gives the same answer, as far as the engine can."),
    "stop": _STOP,
    "frequency_penalty": number("Less of what was said often.", minimum=-2, maximum=2),
    "presence_penalty": number("Less of what was said at all.", minimum=-2, maximum=2),
    "logit_bias": {
        "type": "object",
        "description": "Added to the logits of tokens, by token id.",
        "additionalProperties": {"type": "number"},
    },
    "user": text("Your name of the end user. Passed on, and not kept."),
}
_USAGE = record(
    "The engine's own count.",
    "prompt_tokens total_tokens",
    prompt_tokens=whole("Tokens of the prompt."),
    completion_tokens=whole("Tokens that were generated."),
    total_tokens=whole("Both."),
    prompt_tokens_details=maybe(anything("`cached_tokens`: how many were found in the prefix cache.")),
)
_FINISH = maybe(
    text(
        "Why it ended: it was done, its length was used up, it calls tools, or it was filtered.",
        enum=["stop", "length", "tool_calls", "content_filter"],
    )
)
_PART = record(
    "A part of a message: text, or an image.",
    "type",
    type=text("What it is.", enum=["text", "image_url"]),
    text=text("With `text`."),
    image_url=record(
        "With `image_url`, for models that see.",
        "url",
        url=text("A `data:` URL; an http(s) address is fetched by us, where the installation allows it."),
    ),
)
_MESSAGE = record(
    "One turn.",
    "role",
    role=text("Who speaks.", enum=["system", "developer", "user", "assistant", "tool"]),
    content=either("Text, or parts.", {"type": "string"}, list_of(ref("ContentPart")), {"type": "null"}),
    name=text("A name of the speaker."),
    tool_calls=list_of(anything("As it came in an earlier answer."), "Of an assistant's turn."),
    tool_call_id=text("Which call a `tool` turn answers."),
)
_TOOL = record(
    "Something that the model may ask you to do.",
    "type function",
    type=text("Always `function`.", enum=["function"]),
    function=record(
        "The function.",
        "name",
        name=text("Its name.", pattern="^[A-Za-z0-9_-]{1,64}$"),
        description=text("When to call it."),
        parameters=anything("A JSON Schema of its arguments."),
        strict=flag("Whether the arguments must keep to the schema."),
    ),
)
_CHOSEN = record(
    "What was generated.",
    "role content",
    role=text("Always `assistant`."),
    content=maybe(text("The text; null where tools are called instead.")),
    tool_calls=maybe(list_of(anything("`id`, `type`, and `function` with `name` and `arguments` (JSON in a string)."))),
    reasoning_content=maybe(text("What a reasoning model thought before it spoke.")),
)


def _answer(kind: str, said: str, choice: Schema, *, needed: str = "id object created model choices") -> Schema:
    return record(
        said,
        needed,
        id=text("The engine's id of the answer. Ours is in `x-request-id`."),
        object=text("The kind of this object.", const=kind),
        created=whole("Unix time, in seconds."),
        model=text("The model, by the engine's name of it."),
        choices=list_of(choice, "As many as `n`."),
        usage=maybe(ref("Usage")),
    )


SCHEMAS: dict[str, Schema] = {
    "Usage": _USAGE,
    "ContentPart": _PART,
    "Message": _MESSAGE,
    "Tool": _TOOL,
    "ChatRequest": record(
        "Fields that are not listed here reach the engine as they are.",
        "model messages",
        model=text("A model's id or alias; `GET /v1/models` lists them."),
        messages=list_of(ref("Message"), "The conversation so far.", minItems=1),
        **_SAMPLING,
        max_completion_tokens=whole("OpenAI's newer name of `max_tokens`; the lower of the two counts.", minimum=1),
        tools=list_of(ref("Tool"), "For models with the capability `tools`."),
        tool_choice=either(
            "Which tool is called, if any.", text("", enum=["none", "auto", "required"]), anything("One by name.")
        ),
        parallel_tool_calls=flag("Whether several tools may be called at once."),
        response_format=either(
            "How the text is formed.",
            record("Free text.", "type", type=text("", const="text")),
            record("Any JSON.", "type", type=text("", const="json_object")),
            record(
                "JSON that keeps to a schema.",
                "type json_schema",
                type=text("", const="json_schema"),
                json_schema=record(
                    "",
                    "name schema",
                    name=text("A name of yours."),
                    schema=anything("A JSON Schema."),
                    strict=flag("Keep to it exactly."),
                ),
            ),
        ),
        logprobs=flag("Whether the probabilities of the tokens come along.", default=False),
        top_logprobs=whole("How many of the likeliest at each place. Only with `logprobs`.", minimum=0, maximum=20),
        reasoning_effort=text("How long a reasoning model may think."),
    ),
    "ChatAnswer": _answer(
        "chat.completion",
        "A whole answer.",
        record(
            "One answer.", "index message finish_reason", index=whole("Which of `n`."), message=_CHOSEN, finish_reason=_FINISH
        ),
    ),
    "ChatChunk": _answer(
        "chat.completion.chunk",
        "One event of a stream, `data: {...}`. The last is `data: [DONE]`.",
        record(
            "What is new of one answer.",
            "index delta",
            index=whole("Which of `n`."),
            delta=anything("The next piece: `content`, `reasoning_content` or `tool_calls`; the first has the `role`."),
            finish_reason=_FINISH,
        ),
    ),
    "CompletionRequest": record(
        "Fields that are not listed here reach the engine as they are.",
        "model prompt",
        model=text("A model's id or alias."),
        prompt=either(
            "One prompt or several; each is answered, and the fare counts each.",
            {"type": "string"},
            list_of({"type": "string"}, minItems=1),
            list_of({"type": "integer", "minimum": 0}, "Token ids of this model's own tokenizer.", minItems=1),
        ),
        **{**_SAMPLING, "max_tokens": whole("The longest output, in tokens.", minimum=1, default=16)},
        best_of=whole("How many are generated, of which `n` are returned. The fare counts each.", minimum=1),
        echo=flag("Whether the prompt comes back too."),
        logprobs=whole("How many of the likeliest tokens at each place.", minimum=0, maximum=5),
        suffix=text("What follows what is generated."),
    ),
    "CompletionAnswer": _answer(
        "text_completion",
        "A whole answer; a stream's events have the same shape.",
        record(
            "One answer.", "index text", index=whole("Which of them."), text=text("What was generated."), finish_reason=_FINISH
        ),
    ),
}
EXAMPLES = {
    "ChatRequest": {
        "model": "smollm2-135m-instruct",
        "messages": [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Why is the sky blue?"}],
        "max_tokens": 200,
        "stream": True,
    },
    "ChatAnswer": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1796083200,
        "model": "smollm2-135m-instruct",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Air scatters blue light more than red."},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 21, "completion_tokens": 9, "total_tokens": 30},
    },
    "ChatChunk": {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1796083200,
        "model": "smollm2-135m-instruct",
        "choices": [{"index": 0, "delta": {"content": "Air "}, "finish_reason": None}],
    },
    "CompletionRequest": {"model": "smollm2-135m-instruct", "prompt": "The sky is", "max_tokens": 16},
    "CompletionAnswer": {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1796083200,
        "model": "smollm2-135m-instruct",
        "choices": [{"index": 0, "text": " blue.", "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    },
}
