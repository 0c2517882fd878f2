"""The Lua scripts of the gate, loaded from the files beside this one."""

from importlib.resources import files

from gateway.valkey import Script


def _load(*names: str) -> Script:
    folder = files("gateway.limits")
    return Script.of("\n".join(folder.joinpath(f"{name}.lua").read_text(encoding="utf-8") for name in names))


# `allow-oom` in the first line of some: what ends calls or keeps them alive must pass when the memory is full, so that
# running calls finish; what begins them (admit) is refused.
OPEN = _load("open")
LEASE = _load("lease")
ADMIT = _load("admit")
SETTLE = _load("close", "settle")
ASSERT = _load("assert")
FORGET = _load("forget")
SWEEP = _load("close", "sweep")
SEED = _load("seed")
BUMP = _load("bump")
ONCE_CLAIM = _load("once_claim")
ONCE_KEEP = _load("once_keep")
ONCE_FREE = _load("once_free")
