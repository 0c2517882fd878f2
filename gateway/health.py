"""Can this gateway take calls: the reasons why not."""

from backends.choose import Standing
from gateway.wiring import House


def readiness(house: House) -> list[str]:
    """Empty when ready. PostgreSQL is not asked: calls go on from cache without it."""
    reasons = []
    if house.drain.has_begun:
        reasons.append("draining: this gateway is leaving")
    if not house.valkey.connected:
        reasons.append("Valkey can't be reached, so no fare can be held")
    if all(house.readiness.standing(replica.id) is Standing.BROKEN for replica in house.roster.replicas):
        reasons.append("no engine replica is healthy")
    return reasons
