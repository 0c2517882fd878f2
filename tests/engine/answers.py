"""Puts recorded calls to a live engine or gateway again, several at a time, and says which rules the answers break."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.engine.conformance import broken_rules
from tests.recordings.asking import ask
from tests.recordings.calls import CALLS
from tests.recordings.recording import Answer

# vLLM works on 16 at once; four are left for the rest.
AT_ONCE = 12


@dataclass(frozen=True, slots=True)
class Answers:
    """By case."""

    by_case: Mapping[str, Answer]

    def broken(self) -> dict[str, list[str]]:
        """Each rule that is broken, and the cases that break it."""
        found: dict[str, list[str]] = {}
        for case, answer in self.by_case.items():
            for name in sorted(broken_rules(CALLS[case], answer)):
                found.setdefault(name, []).append(case)
        return found

    def statuses(self) -> dict[str, int]:
        return {case: answer.status for case, answer in self.by_case.items()}


def answers(url: str, cases: Iterable[str], *, token: str | None = None, at_once: int = AT_ONCE) -> Answers:
    with ThreadPoolExecutor(at_once) as threads:
        asked = {case: threads.submit(ask, url, CALLS[case], token=token) for case in cases}
        return Answers({case: answer.result() for case, answer in asked.items()})
