"""One request's place in its key's row of errors: refused when the row is too long, else noted by how it ends."""

from gateway.api.body import ClientGone
from gateway.limits.refusals import IdempotencyKeyInUse, QuotaUsedUp, TooManyOpenCalls
from gateway.loops import Loops, RequestRepeated

# These count for nothing: nobody was answered, or the answer to one of the key's calls is on its way, or we said it already; or
# the day's quota is spent, which costs nothing to say and ends in an instant, at midnight or with a larger plan.
_NO_ERRORS = (ClientGone, TooManyOpenCalls, QuotaUsedUp, IdempotencyKeyInUse, RequestRepeated)


class Attempt:
    """`with Attempt(...)`, from the body on. Raises on entering: RequestRepeated."""

    __slots__ = ("_body", "_key", "_loops")

    def __init__(self, loops: Loops, key: str, body: bytes) -> None:
        self._loops, self._key, self._body = loops, key, body

    def __enter__(self) -> None:
        self._loops.check(self._key, self._body)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._loops.answered(self._key, self._body)
        elif isinstance(error, Exception) and not isinstance(error, _NO_ERRORS):
            self._loops.failed(self._key, self._body)
