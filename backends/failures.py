"""What can go wrong with an engine, told apart by what it means for the call: another replica, a void, or nobody's fault."""

from typing import Literal


class EngineFault(Exception):
    """The replica did not do its part. Never a client's fault."""


class EngineUnreachable(EngineFault):
    """No connection, or it closed before one byte of an answer: another replica may be tried."""


class EngineHungUp(EngineUnreachable):
    """It took the request, and closed before one byte of an answer: it may have died, or have died of this request."""


class EngineTimedOut(EngineFault):
    """The engine took the request and then fell silent."""

    def __init__(self, where: str, stage: Literal["first_byte", "between_bytes"], seconds: float) -> None:
        super().__init__(f"{where} sent nothing for {seconds:g} s while we waited for the {_AWAITED[stage]}")
        self.stage = stage


class EngineBroke(EngineFault):
    """The connection was cut after the answer began and before it was whole."""

    def __init__(self, where: str, after: Literal["head", "body"]) -> None:
        super().__init__(f"{where} cut its answer short in the {after}")
        self.after = after


class EngineSpokeNonsense(EngineFault):
    """What came back is not HTTP that we accept."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} sent no valid HTTP answer: {what}")


class Aborted(Exception):
    """We closed the connection ourselves, for `reason` (None: nobody wanted the answer any more)."""

    def __init__(self, reason: BaseException | None = None) -> None:
        super().__init__(str(reason) if reason else "the answer is no longer wanted")
        self.reason = reason


_AWAITED = {"first_byte": "head of its answer", "between_bytes": "rest of its answer"}
