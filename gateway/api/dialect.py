"""How the answers of one family of endpoints look on the wire: what the path of a call needs to know of them, and no more."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from backends.engines.kind import EngineKind
from gateway.errors import Refusal
from gateway.progress import Usage

Headers = Sequence[tuple[bytes, bytes]]
JSON = (b"content-type", b"application/json")


class Question(NamedTuple):
    """What an answer is read by: the client's own body, whether its stream wants usage, the kind of engine that answers, and how
    many tokens it was allowed."""

    body: Mapping[str, Any]
    wants_usage: bool
    engine: EngineKind
    output_limit: int | None = None


class Whole(NamedTuple):
    """What an answer that was not streamed tells. `body` replaces the engine's bytes where an edit was needed."""

    usage: Usage
    is_empty: bool
    body: bytes | None = None


class Reader(Protocol):
    """One stream from an engine, read as bytes."""

    has_output: bool  # a non-empty piece of content, reasoning or tool call has passed
    frames: int  # those that stand for about a token each, where the engine's own count is missing
    usage: Usage | None

    def feed(self, data: bytes) -> bytes:
        """What the client gets of it. Raises: StreamBroke."""
        ...

    def end(self) -> bytes:
        """The engine's side has closed: what is still owed to the client. Raises: StreamBroke when the answer was cut."""
        ...

    def last_words(self) -> bytes:
        """Frames that end the answer as cut by length."""
        ...

    def silence(self) -> bytes:
        """What keeps the line open while the engine says nothing, between two frames."""
        ...


class Dialect(Protocol):
    """Stateless; one instance serves every call."""

    silence: bytes  # keeps the line open before the first byte of the engine's answer

    def reader(self, question: Question) -> Reader: ...

    def whole(self, body: bytes, question: Question) -> Whole:
        """An engine's body, read as the answer to the question. Raises: StreamBroke when it is none."""
        ...

    def refused(self, refusal: Refusal, request_id: bytes) -> tuple[int, Headers, bytes]:
        """Status, headers, body of an error while nothing has left."""
        ...

    def broken(self, refusal: Refusal, reader: Reader | None) -> bytes:
        """An error inside a stream that has begun, and the stream's end."""
        ...

    def account(self, account: bytes) -> Headers:
        """The headers that name who pays."""
        ...

    def took(self, milliseconds: int) -> Headers:
        """The headers that tell how long a whole answer took."""
        ...

    def identity(self, request_id: bytes) -> Headers:
        """The headers that name the request."""
        ...

    def rate_limit(self, limit: bytes, remaining: bytes, reset: bytes) -> Headers:
        """The day's quota under the names of this family, beside those that all answers carry. `reset` is RFC 3339."""
        ...
