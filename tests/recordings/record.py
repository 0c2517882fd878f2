"""Records what an engine answers: `python -m tests.recordings.record vllm http://127.0.0.1:8000 chat completions`."""

import argparse
from collections.abc import Sequence

from tests.recordings.asking import ask
from tests.recordings.calls import CALLS
from tests.recordings.recording import Recording


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.recordings.record", description=__doc__)
    parser.add_argument("kind", help="the engine's kind, and the folder to write to: vllm, llamacpp")
    parser.add_argument("url")
    parser.add_argument("cases", nargs="+", help="how the names of the cases to record begin")
    asked = parser.parse_args(arguments)
    for case, call in CALLS.items():
        if case.startswith(tuple(asked.cases)):
            answer = ask(asked.url, call)
            Recording(asked.kind, case, call, answer).write()
            print(f"{answer.status} {len(answer.body):>7} bytes {len(answer.reads):>4} reads  {case}", flush=True)


if __name__ == "__main__":
    main()
