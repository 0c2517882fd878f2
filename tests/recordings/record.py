"""Records what an engine answers: `python -m tests.recordings.record vllm http://127.0.0.1:8000 chat completions`."""

import argparse
import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tests.recordings.asking import ask
from tests.recordings.calls import CALLS
from tests.recordings.calls_broken import AFTERWARDS, BROKEN
from tests.recordings.recording import Answer, Call, Recording

# Long enough that every stream has begun.
STREAMS_BEGIN_SECONDS = 4.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.recordings.record", description=__doc__)
    parser.add_argument("kind", help="the engine's kind, and the folder to write to: vllm, llamacpp")
    parser.add_argument("url")
    parser.add_argument("cases", nargs="*", help="how the names of the cases to record begin")
    parser.add_argument("--kill", type=int, help="record what a broken engine says, by killing this pid under its streams")
    asked = parser.parse_args(arguments)
    if asked.kill:
        _record_broken(asked.kind, asked.url, asked.kill)
    else:
        _record(asked.kind, asked.url, {case: call for case, call in CALLS.items() if case.startswith(tuple(asked.cases))})


def _record(kind: str, url: str, calls: Mapping[str, Call]) -> None:
    for case, call in calls.items():
        answer = _without_paths(ask(url, call))
        Recording(kind, case, call, answer).write()
        print(f"{answer.status} {len(answer.body):>7} bytes {len(answer.reads):>4} reads  {case}", flush=True)


def _without_paths(answer: Answer) -> Answer:
    """vLLM's list of models tells where the weights lie on this machine."""
    body = re.sub(rb'"root":"[^"]*"', b'"root":"/models"', answer.body)
    return answer if body == answer.body else replace(answer, body=body, reads=[len(body)])


def _record_broken(kind: str, url: str, pid: int) -> None:
    with ThreadPoolExecutor(len(BROKEN)) as threads:
        records = [threads.submit(_record, kind, url, {case: call}) for case, call in BROKEN.items()]
        time.sleep(STREAMS_BEGIN_SECONDS)
        os.kill(pid, signal.SIGKILL)
    for done in records:
        done.result()
    _record(kind, url, AFTERWARDS)


if __name__ == "__main__":
    main()
