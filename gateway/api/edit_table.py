"""Every edit we make to what passes through, with the code that makes it; docs/edits.md is written from it."""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.api.edits import ENGINE_ONLY


class Edit(NamedTuple):
    """`by` is where it is made, below `gateway.api`; `kinds` are the engines that need it (none named: all get it)."""

    what: str
    edit: str
    why: str
    by: str
    kinds: tuple[str, ...] = ()


VLLM, LLAMACPP = ("vllm",), ("llamacpp",)

REQUESTS = (
    Edit("`model`", "the engine's own name for it (`engine_model` in the fleet file)", "aliases are ours", "edits.engine_body"),
    Edit(
        ", ".join(f"`{field}`" for field in ENGINE_ONLY),
        "removed",
        "they choose priority, cache partition, hosts or code: the operator's business; or are engines' own names for "
        "`max_tokens`, `n` and `top_logprobs`, which would pass the limits by",
        "edits.ENGINE_ONLY",
    ),
    Edit(
        "`service_tier`",
        "`flex` puts the call into class batch, every other word leaves it in the plan's; then removed",
        "engines ignore it; a class is what a plan buys",
        "service_tiers.service_class",
    ),
    Edit(
        "`priority`, header `x-vllm-priority`",
        "the number of the call's class, where the fleet file says that the replica heeds it (`docs/capacity.md`)",
        "the engine's own order must not be another than ours",
        "edits.engine_headers",
    ),
    Edit(
        "`cache_salt` (SGLang: `extra_key`)",
        "the account's own, unless the fleet file says `share_prefixes = true` (`docs/routing.md`)",
        "the time to a first token would tell one customer what another has sent",
        "salts.Salts",
        ("vllm", "sglang"),
    ),
    Edit(
        "`max_tokens`, `max_completion_tokens`, `max_output_tokens`",
        "lowered to what the plan and the context leave; two of them become one",
        "engines answer 400 to more, and some clients always ask for 32,000",
        "edits._cap_output",
    ),
    Edit(
        "none of them",
        "the plan's output limit, where it is below the context; 16 in a text completion",
        "a chat engine would fill the context; 16 is OpenAI's default",
        "order._output_default",
    ),
    Edit(
        "messages of role `developer`",
        "role `system`, unless the catalogue says that the model's template knows the role",
        "templates refuse it, or write it out as a word that the model has never seen",
        "chat_messages.developer_as_system",
    ),
    Edit(
        "images by http(s) address",
        "fetched by us, from public hosts alone, and written in as data (or refused: `FAREGATE_FETCH_IMAGES`)",
        "the engine would connect to where a client says",
        "images.put_in",
    ),
    Edit(
        "`uuid` of a part of a message, `content_hash` of an image",
        "removed",
        "they find media that anybody sent before",
        "chat.count_image",
        ("vllm", "sglang"),
    ),
    Edit(
        "`image_embeds`, `audio_embeds`, `prompt_embeds` in messages",
        "refused with 400",
        "tensors, which an engine loads as they are",
        "chat.count_image",
    ),
    Edit("sound, video, files by address", "refused with 400; send a `data:` URL", "the same", "chat.count_image"),
    Edit(
        "all headers",
        "not forwarded",
        "an engine gets `content-type`, `accept`, its own key, and its priority",
        "edits.engine_headers",
    ),
)

CHAT = (
    Edit(
        "`stream_options` on a stream",
        'becomes `{"include_usage": true}`',
        "the meter needs the engine's count; per-chunk usage makes clients add up each one",
        "chat._edit",
    ),
    Edit(
        "lists of text in messages of `tool`, `function` and `assistant`",
        "one string, joined by line ends; a `refusal` is text",
        "some templates leave a list out without a word, and the model answers as if the tool had said nothing",
        "chat_messages.plain",
    ),
    Edit(
        "`guided_json`, `guided_regex`, `guided_choice`, `guided_grammar`, `guided_json_object`",
        "become `structured_outputs`; `guided_decoding_backend` is removed",
        "vLLM takes the old names and ignores them: free text with status 200",
        "constraints.translate",
        VLLM,
    ),
    Edit(
        "the same, and `structured_outputs`",
        "become `json_schema` or `grammar`; a regular expression is refused with 400",
        "it would ignore them",
        "constraints.translate",
        LLAMACPP,
    ),
    Edit(
        "the same, and `structured_outputs`",
        "become `response_format`, at sglang also `regex` or `ebnf`; the others refuse all but JSON with 400",
        "it would ignore them",
        "constraints.translate",
        ("sglang", "trtllm", "tgi", "upstream"),
    ),
    Edit(
        "`response_format` of a text completion",
        "becomes `json_schema`",
        "it would be ignored",
        "constraints._move_response_format",
        LLAMACPP,
    ),
    Edit("`functions`, `function_call`", "refused with 400; send `tools`", "no engine heeds them", "bounds.check"),
    Edit(
        "a body of `/v1/responses` posted to `/v1/chat/completions`",
        "read as a chat",
        "Cursor does so, and waits for chunks",
        "response_as_chat.rewrite",
    ),
)

RESPONSES = (
    Edit(
        "`store`", "false", "nothing is stored, and the answer says so; what needs a store is refused with 400", "responses._edit"
    ),
    Edit("`include`", "left with `message.output_text.logprobs`", "the rest is of hosted tools", "responses._edit"),
    Edit(
        "fields of other APIs: `messages`, `n`, `max_tokens`, `response_format`, ...",
        "removed",
        "engines that read it as a chat heed them",
        "responses._NOT_OF_THIS_API",
    ),
    Edit(
        "system and developer messages at the start",
        "join `instructions`",
        "many templates know neither a developer nor a second system message",
        "response_items.fold_instructions",
    ),
    Edit(
        "reasoning that only its maker can decrypt",
        "left out; a summary stays",
        "engines refuse the request for it",
        "response_items._readable",
    ),
    Edit(
        "tools that their vendor hosts (`web_search`, ...)",
        "left out",
        "no engine has them, and Codex sends them with every request",
        "response_tools.for_engine",
    ),
    Edit("a grammar of a custom tool", "told to the model in words", "it refuses one", "response_tools._as_free_text", VLLM),
    Edit(
        "namespaces of functions",
        "functions, with the namespace in the name; calls get both back",
        "it knows functions alone",
        "response_tools.for_engine",
        ("llamacpp", "sglang"),
    ),
    Edit(
        "custom tools; their earlier calls and outputs",
        "left out; functions'",
        "it knows functions alone",
        "response_items._as_function",
        ("llamacpp", "sglang"),
    ),
    Edit(
        "reasoning with a summary alone", "the summary is its content", "it reads no other", "response_items._readable", LLAMACPP
    ),
    Edit("`text.format`", "`response_format`", "it heeds only chat's field", "response_items._move_format", LLAMACPP),
)

MESSAGES = (
    Edit(
        "the line `x-anthropic-billing-header: ...` before a system prompt",
        "taken out",
        "it changes with every request, and no engine's prefix cache would ever hit",
        "message_edits._drop_billing_line",
    ),
    Edit(
        "documents of text; others",
        "their text; refused with 400",
        "engines know no documents, and none that can read a file",
        "message_edits._write_documents_out",
    ),
    Edit(
        "tools without `input_schema` (`web_search_20250305`, ...)",
        "refused with 400",
        "Anthropic's servers run them, or its models were taught them: here they would be made up",
        "messages._check_tools",
    ),
    Edit(
        "system messages among the others",
        "join `system`",
        "it refuses them, or its templates do",
        "message_edits._fold_system",
        ("llamacpp", "sglang"),
    ),
    Edit(
        "`thinking` of another type than `adaptive` and `disabled`",
        "`adaptive`, without its budget",
        "it refuses them unless it was started with a parser of thoughts, streams after their 200",
        "message_edits.edit",
        VLLM,
    ),
    Edit(
        "`tool_choice` of none or of one tool",
        "leaves the others out of `tools`",
        "not heeded",
        "message_edits._choose_tools",
        LLAMACPP,
    ),
)

VECTORS = (
    Edit("documents of `/v1/rerank` that are objects", "their `text` alone", "engines take strings only", "rerank._as_texts"),
    Edit(
        "`dimensions`",
        "refused with 400",
        "it would be ignored, and the vectors be longer than was asked for",
        "embeddings._held_to_dimensions",
        LLAMACPP,
    ),
    Edit("`top_n: null`", "removed", "engines take a number only", "rerank._as_texts"),
    Edit(
        "token ids, `messages` in `/v1/embeddings`; `queries`, `documents`, `items`, `data_1`, `data_2` in `/v1/score`",
        "refused with 400",
        "ids of another tokenizer give wrong vectors without an error; what stands beside the input would be read uncounted, "
        "images by address in it too",
        "embeddings._input",
    ),
)

CHUNKS = (
    Edit(
        "usage in chunks that have other content, and the usage chunk",
        "taken out; with `stream_options.include_usage`, one chunk at the end",
        "what was not asked for is not sent, and some clients add up every one",
        "chunks.ChunkReader._take",
    ),
    Edit("comments, named events, chunks without choices", "taken out", "some clients break on them", "chunks.ChunkReader._look"),
    Edit("a missing `data: [DONE]` after a finish", "supplied", "clients wait for it", "chunks.ChunkReader.end"),
    Edit(
        "a finish reason that is none of OpenAI's",
        "`stop` or `length`; one that says that the engine gave up breaks the answer",
        "clients re-send the request without end",
        "chunk_repairs.standard_finish",
    ),
    Edit(
        "`stop` after a tool call (seen where the client named the tool), `tool_calls` without one",
        "`tool_calls`, `stop`",
        "clients branch on it",
        "chunk_repairs.standard_finish",
        VLLM,
    ),
    Edit(
        "a choice's first delta without role or content, a chunk without index or delta",
        "put in",
        "SDKs' helpers raise on it",
        "chunk_repairs._introduce",
        LLAMACPP,
    ),
    Edit(
        "a call's first delta without `arguments`",
        "an empty string",
        "the parts are put together",
        "chunk_repairs.ChunkRepairs",
        VLLM,
    ),
    Edit(
        "a call's name and id in later deltas",
        "taken out",
        "clients write `get_weatherget_weather`",
        "chunk_repairs._say_once",
    ),
    Edit(
        "arguments that are an object, or that never came", "a string; `{}`", "clients fail the call", "chunk_repairs._stringify"
    ),
    Edit("`reasoning`", "`reasoning_content`", "some clients know it by that name only", "chunks._rename_reasoning", VLLM),
)

VECTOR_ANSWERS = (
    Edit(
        "vectors in the other format than `encoding_format` says",
        "converted",
        "clients read a list of numbers as base64 of a vector with a fourth of its dimensions",
        "embeddings.Vectors",
    ),
    Edit(
        "results of `/v1/rerank`",
        "sorted, cut to `top_n`, with or without documents as `return_documents` says",
        "engines know some of this each (vLLM returns documents always, llama.cpp never)",
        "rerank.Ranking",
    ),
    Edit(
        "fewer vectors, results or scores than were asked for, or an empty one",
        "another replica, then 502; not billed",
        "clients take them for a whole answer",
        "whole_only.listed",
    ),
)

EVENTS = (
    Edit(
        "the last event of a `/v1/responses` answer that was cut, called completed",
        "`response.incomplete`, `max_output_tokens`",
        "that is what it is",
        "response_events.EventReader._finish",
        ("vllm", "llamacpp"),
    ),
    Edit(
        "numbers, positions, ids and fields that events of `/v1/responses` lack",
        "put in",
        "SDKs drop such events, or raise",
        "response_repairs.Repairs",
        LLAMACPP,
    ),
    Edit(
        "events of `/v1/messages`: a block that stays open, a call without `input`, `end_turn` at a stop sequence",
        "closed, put in, `stop_sequence`",
        "clients keep one block at a time",
        "message_repairs.mended",
        LLAMACPP,
    ),
    Edit(
        "an event of `/v1/messages` without its `event:` line",
        "named as its `type` says",
        "SDKs drop it without a word",
        "message_events.MessageReader",
    ),
    Edit("503 `server_is_overloaded` of `/v1/messages`", "529", "Anthropic's own status for it", "message_errors.OVERLOADED"),
)

ANSWERS = (
    Edit(
        "a stream that breaks off, or with an error frame",
        "an error event as each API has it; not billed",
        "without it clients take a cut answer for a whole one",
        "chunks.Chunks.broken",
    ),
    Edit(
        "our total time-out after output",
        'ends as cut by length (`finish_reason: "length"`, `response.incomplete`, `max_tokens`); billed',
        "the answer ends properly",
        "relay.StreamRelay.cut_as_length",
    ),
    Edit(
        "a stream without output for 5 s, or silent for 10 s",
        "status 200 and what each API keeps a line open with: comments, `response.in_progress`, `ping`",
        "hops on the way give up on silent lines",
        "exchange.KeepWarm",
    ),
    Edit(
        "an engine's 4xx",
        "400 in the API's own envelope, with the engine's words",
        "some clients retry 413 and 422",
        "faults.client_error",
    ),
    Edit(
        "an engine's 5xx, or no engine",
        "another replica while nothing was delivered, up to 3 in all; then 502, 503 or 504",
        "",
        "delivery.Delivery",
    ),
    Edit("all headers", "not forwarded", "an engine's name, address and encoding are its own business", "exchange.Exchange"),
)

SECTIONS: Sequence[tuple[str, Sequence[Edit]]] = (
    ("Requests, everywhere", REQUESTS),
    ("Requests: `/v1/chat/completions` and `/v1/completions`", CHAT),
    ("Requests: `/v1/responses`", RESPONSES),
    ("Requests: `/v1/messages`", MESSAGES),
    ("Requests: `/v1/embeddings`, `/v1/rerank`, `/v1/score`", VECTORS),
    ("Answers: `/v1/chat/completions` and `/v1/completions`", CHUNKS),
    ("Answers: `/v1/responses` and `/v1/messages`", EVENTS),
    ("Answers: `/v1/embeddings`, `/v1/rerank`, `/v1/score`", VECTOR_ANSWERS),
    ("Answers, everywhere", ANSWERS),
)
