"""An answer that is an error, in OpenAI's envelope. (The table from domain errors to these is in `refusals`.)"""

import orjson


def envelope(message: str, kind: str, param: str | None, code: str | None) -> bytes:
    """OpenAI's error body; all four keys are required by its specification."""
    return orjson.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


class Refusal(Exception):
    """An error answer: `status`, the envelope's fields, and when to come back.

    `retry_after_seconds` is 1 to 60 or None: clients ignore longer ones, or sleep them out. `retry_after_ms` is the same to the
    millisecond, where it is known; SDKs look for it first.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after_seconds: int | None = None,
        retry_after_ms: int | None = None,
        should_retry: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.code, self.param = status, message, kind, code, param
        self.retry_after_seconds, self.retry_after_ms = retry_after_seconds, retry_after_ms
        self.should_retry = should_retry

    def body(self) -> bytes:
        return envelope(self.message, self.kind, self.param, self.code)

    def headers(self) -> list[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        if self.retry_after_seconds is not None:
            found.append((b"retry-after", b"%d" % self.retry_after_seconds))
            found.append((b"retry-after-ms", b"%d" % (self.retry_after_ms or 1000 * self.retry_after_seconds)))
        if self.should_retry is not None:
            found.append((b"x-should-retry", b"true" if self.should_retry else b"false"))
        return found


def wrong(field: str, must_be: str, code: str = "invalid_value") -> Refusal:
    """A field of the body is not what it must be."""
    return Refusal(400, f"{field} must be {must_be}.", param=field, code=code)
