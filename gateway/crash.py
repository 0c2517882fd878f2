"""Named points at which a test can kill this process, as a power cut would."""

import os

_CRASH_AT = os.environ.get("FAREGATE_CRASH_AT", "")


def crash_point(name: str) -> None:
    """Die here, without any clean-up, when FAREGATE_CRASH_AT names this point."""
    if name == _CRASH_AT:
        os._exit(137)
