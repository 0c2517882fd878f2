"""What arrives, and when: a Poisson stream of calls of three plans, the same for every variant that is measured."""

from dataclasses import dataclass
from random import Random

SHARES = {"premium": 10, "pro": 30, "free": 60}  # percent of the calls
# So many that no account's own turn, limit or recent work decides who is next.
ACCOUNTS = {"premium": 10, "pro": 30, "free": 60}
# English words that SmolLM2 has tokens for; a call has 10 to 80 of them.
WORDS = ("river", "stone", "market", "winter", "engine", "letter", "garden", "morning", "silver", "question", "road", "music")
WORDS_MIN, WORDS_MAX = 10, 80


@dataclass(frozen=True, slots=True)
class Arrival:
    """`at` is seconds after the beginning; `account` a number below its class's `ACCOUNTS`."""

    at: float
    class_: str
    account: int
    words: str


def arrivals(seed: int, per_second: float, seconds: float) -> list[Arrival]:
    chance, found = Random(seed), list[Arrival]()
    at = chance.expovariate(per_second)
    while at < seconds:
        found.append(_arrival(chance, at))
        at += chance.expovariate(per_second)
    return found


def endless(seed: int, count: int) -> list[Arrival]:
    """Calls of the same kind that wait for nothing but each other."""
    chance = Random(seed)
    return [_arrival(chance, 0.0) for _ in range(count)]


def _arrival(chance: Random, at: float) -> Arrival:
    class_ = chance.choices(tuple(SHARES), tuple(SHARES.values()))[0]
    words = chance.choices(WORDS, k=chance.randint(WORDS_MIN, WORDS_MAX))
    return Arrival(at, class_, chance.randrange(ACCOUNTS[class_]), " ".join(words))
