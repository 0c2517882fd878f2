"""Where the engines that we run break the rules that clients count on; `docs/engines.md` shows this table.

A breach that an engine's new version mends fails those tests, so that our edit for it can go.
"""

from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Breach:
    """`kinds`: the engine kinds that do it. `what` they do.

    `passed_on`: those of which the gateway leaves it as it is, since no client was seen to mind, or the truth is not to be had.
    """

    kinds: frozenset[str]
    what: str
    passed_on: frozenset[str] = frozenset()


def _vllm(what: str) -> Breach:
    return Breach(frozenset({"vllm"}), what)


def _llamacpp(what: str) -> Breach:
    return Breach(frozenset({"llamacpp"}), what)


def _both(what: str) -> Breach:
    return Breach(frozenset({"vllm", "llamacpp"}), what)


def _passed_on(breach: Breach) -> Breach:
    return replace(breach, passed_on=breach.kinds)


BREACHES = MappingProxyType(
    {
        # Chat and text completions.
        "first-content-null": _llamacpp("the first delta has `content: null`"),
        "tool-arguments-late": _vllm("the first delta of a tool call has no `arguments`"),
        "finish-reason-hides-tool-calls": _vllm("a named `tool_choice` ends with `stop`"),
        "reasoning-by-another-name": _vllm("thoughts are in `reasoning`, not `reasoning_content`"),
        "usage-not-last": _llamacpp("a text completion's usage is in its last chunk of text, not in one of its own"),
        "usage-repeated": _llamacpp("with `n`, each choice brings a usage chunk"),
        "usage-of-one-choice": _passed_on(_llamacpp("with `n` or several prompts, one choice's tokens are counted")),
        "no-done": _llamacpp("a stream that fails ends without `[DONE]`"),
        "error-code-a-number": _both("an error's `code` is the status as a number"),
        "error-keys-missing": _llamacpp("an error has no `param`"),
        "error-without-envelope": _vllm('an unknown path is answered `{"detail": ...}`'),
        # Responses.
        "cut-answer-completed": _both("a cut answer ends as `response.completed`; llama.cpp also calls it completed"),
        "sequence-number-missing": _llamacpp("events have no `sequence_number`"),
        "output-index-missing": _llamacpp("events have no `output_index`"),
        "event-unnamed": _llamacpp("an error inside a stream has no `event:` line"),
        "terminal-event-missing": _both("a stream that fails ends without `response.failed`; vLLM's just stops"),
        # Messages.
        "message-id-of-another-surface": _passed_on(_both("ids begin with `chatcmpl-`")),
        "stop-sequence-missing": _passed_on(_vllm("a whole message has no `stop_sequence` when none was hit")),
        "stop-sequence-said-otherwise": _llamacpp("a hit stop sequence is called `end_turn`"),
        "last-usage-without-input": _passed_on(_llamacpp("the last usage has no `input_tokens`")),
        "blocks-overlap": _llamacpp("with two tool calls, a block begins before the one before it has ended"),
        "refused-inside-the-stream": _vllm("a thinking budget that it can't keep is refused after status 200"),
        "error-not-anthropics": _both("errors are in OpenAI's envelope, or with types of its own"),
    }
)  # fmt: skip
