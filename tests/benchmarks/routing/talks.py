"""The conversations that are measured: several at once, of several turns each, under a few long system prompts."""

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.benchmarks.queue.trace import WORDS
from tests.engine.vllm import CHAT

CONVERSATIONS, TURNS, SYSTEMS = 8, 6, 3
SYSTEM_WORDS, QUESTION_WORDS, ANSWER_TOKENS = 700, 40, 32
# A person reads before he writes; without it all turns would come in step.
THINKS_SECONDS = (0.2, 1.5)


@dataclass(slots=True)
class Talk:
    """One conversation. Each run of it begins with other words, so that nothing is cached from the run before."""

    number: int
    messages: list[dict[str, str]]
    questions: list[str]
    thinks: list[float]

    def ask(self) -> dict[str, Any]:
        """The next turn."""
        self.messages.append({"role": "user", "content": self.questions.pop(0)})
        return {
            "model": CHAT, "messages": self.messages, "max_tokens": ANSWER_TOKENS, "ignore_eos": True, "temperature": 0,
            "stream": True, "stream_options": {"include_usage": True},
        }  # fmt: skip

    def answered(self, text: str) -> None:
        self.messages.append({"role": "assistant", "content": text})


def talks(seed: int, run: int, conversations: int = CONVERSATIONS) -> list[Talk]:
    """The same for every router in one round of runs, but for the first words."""
    dice = Random(seed)
    systems = [_words(dice, SYSTEM_WORDS) for _ in range(SYSTEMS)]
    return [
        Talk(
            number,
            [{"role": "system", "content": f"Run {run:06d}. {systems[number % SYSTEMS]}"}],
            [_words(dice, QUESTION_WORDS) for _ in range(TURNS)],
            [dice.uniform(*THINKS_SECONDS) for _ in range(TURNS)],
        )
        for number in range(conversations)
    ]


def _words(dice: Random, many: int) -> str:
    return " ".join(dice.choices(WORDS, k=many))
