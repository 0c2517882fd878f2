"""One call to a real engine and what came back, byte for byte, as two files: `<case>.json` (the call) and the answer's body."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked of an engine. A body of bytes is sent as it is; any other as JSON."""

    path: str
    body: Any = None
    method: str = "POST"

    def encoded(self) -> bytes:
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    @property
    def streams(self) -> bool:
        return isinstance(self.body, dict) and self.body.get("stream") is True


@dataclass(frozen=True, slots=True)
class Answer:
    """`reads` are the sizes in which the body arrived, so that it can be played again as it came."""

    status: int
    headers: dict[str, str]
    body: bytes
    reads: list[int]

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def json(self) -> Any:
        return json.loads(self.body)

    def pieces(self) -> list[bytes]:
        """The body in the pieces in which it was read."""
        ends = [sum(self.reads[: count + 1]) for count in range(len(self.reads))]
        return [self.body[end - size : end] for end, size in zip(ends, self.reads, strict=True)]


@dataclass(frozen=True, slots=True)
class Recording:
    """`kind` is the engine's, as in a fleet file."""

    kind: str
    case: str
    call: Call
    answer: Answer

    def write(self) -> None:
        folder = FOLDER / self.kind
        folder.mkdir(exist_ok=True)
        for old in folder.glob(f"{self.case}.*"):
            old.unlink()
        body = self.call.body
        asked = {"method": self.call.method, "path": self.call.path, "body": body.decode() if isinstance(body, bytes) else body}
        answered = {"status": self.answer.status, "headers": self.answer.headers, "reads": self.answer.reads}
        (folder / f"{self.case}.json").write_text(json.dumps({"asked": asked, "answered": answered}, indent=1) + "\n")
        (folder / f"{self.case}.answer.{_ending(self.answer)}").write_bytes(self.answer.body)


def recorded(kind: str, case: str) -> Recording:
    """Raises FileNotFoundError."""
    folder = FOLDER / kind
    told = json.loads((folder / f"{case}.json").read_text())
    asked, answered = told["asked"], told["answered"]
    (body,) = folder.glob(f"{case}.answer.*")
    answer = Answer(answered["status"], answered["headers"], body.read_bytes(), answered["reads"])
    sent = asked["body"].encode() if isinstance(asked["body"], str) else asked["body"]
    return Recording(kind, case, Call(asked["path"], sent, asked["method"]), answer)


def cases(kind: str) -> list[str]:
    """The names of all recordings of a kind."""
    return sorted(path.stem for path in (FOLDER / kind).glob("*.json") if ".answer" not in path.name)


def _ending(answer: Answer) -> str:
    if answer.is_stream:
        return "sse"
    return "json" if answer.headers.get("content-type", "").startswith("application/json") else "txt"
