"""The one decision: the longest known prefix within a load bound, else the least full; and the bugs that other routers had."""

import random
from collections import Counter

from backends.choose import HOME_SLACK, SLACK, Standing, Warmth, preference
from backends.fleet import Replica
from backends.prefix import FINE_BYTES, Prompt, read_prompt
from backends.prefixes import Prefixes
from tests.backends.test_choose import replica

POOL = [replica(name, slots=10) for name in "abcd"]
DICE = random.Random(8)


def prompt(*, blocks: int = 40) -> Prompt:
    return read_prompt(DICE.randbytes(blocks * FINE_BYTES))


def first(load: dict[str, int], known: dict[str, int], *, pool: list[Replica] = POOL, asked: Prompt | None = None) -> str:
    """`known` is in percent of the prompt."""
    asked = asked or prompt()
    warmth = Warmth(asked, {name: asked.size * part // 100 for name, part in known.items()})
    return preference(pool, load, {}, warmth=warmth)[0].id


def test_the_one_that_knows_most_goes_first() -> None:
    assert first({"b": 1, "c": 2}, {"b": 40, "c": 60}) == "c"


def test_beyond_the_bound_what_it_knows_does_not_count() -> None:
    asked, most = prompt(), int(10 * SLACK)
    home = first({}, {}, asked=asked)
    warm = next(each.id for each in POOL if each.id != home)
    assert first({warm: most}, {warm: 100}, asked=asked) == warm
    assert first({warm: most + 1}, {warm: 100}, asked=asked) != warm


def test_the_bound_is_tighter_for_who_knows_little() -> None:
    asked = prompt()
    warm = next(each.id for each in POOL if each.id != first({}, {}, asked=asked))
    assert first({warm: 4}, {warm: 55}, asked=asked) == warm
    assert first({warm: 4}, {warm: 20}, asked=asked) != warm
    assert first({warm: 1}, {warm: 3}, asked=asked) != warm  # not worth it at all


def test_one_on_trial_is_tried_even_so_and_a_broken_one_is_not_asked() -> None:
    asked = prompt()
    warmth = Warmth(asked, {"b": asked.size})
    assert preference(POOL, {}, {"c": Standing.TRIAL}, warmth=warmth)[:2] == (POOL[2], POOL[1])
    assert POOL[1] not in preference(POOL, {}, {"b": Standing.BROKEN}, warmth=warmth)


def test_a_full_one_that_is_warm_stays_first_so_that_its_next_free_place_goes_to_who_waits() -> None:
    assert first(dict.fromkeys("abcd", 10), {"d": 90}) == "d"


def test_a_prompt_that_nobody_knows_has_the_same_home_for_every_gateway() -> None:
    """Each sees its own load alone."""
    prompts = [prompt() for _ in range(400)]
    homes = [first({}, {}, asked=asked) for asked in prompts]
    assert [first(dict.fromkeys("abcd", 1), {}, asked=asked) for asked in prompts] == homes
    assert all(70 < many < 130 for many in Counter(homes).values())
    full = int(10 * HOME_SLACK) + 1
    assert all(first({home: full}, {}, asked=asked) != home for asked, home in zip(prompts, homes, strict=True))


def test_when_a_replica_goes_only_its_own_prompts_move() -> None:
    prompts = [prompt() for _ in range(200)]
    before = [first({}, {}, asked=asked) for asked in prompts]
    after = [first({}, {}, asked=asked, pool=POOL[:3]) for asked in prompts]
    assert {old for old, new in zip(before, after, strict=True) if old != new} == {"d"}


def test_sglang_14305_misses_all_went_to_the_replica_that_knew_least() -> None:
    """The death spiral: the smallest tree was taken for the freest worker, however many calls it had."""
    prefixes = Prefixes()
    for name in "abc":
        prefixes.sent(name, prompt(blocks=400))
    load = {"a": 1, "b": 1, "c": 1, "d": 9}
    for _ in range(50):
        asked = prompt()
        found = preference(POOL, load, {}, warmth=Warmth(asked, prefixes.known("abcd", asked)))
        assert found[0].id != "d"


def test_vllm_router_238_one_hot_replica_switched_affinity_off_for_all() -> None:
    assert first({"a": 10}, {"b": 70}) == "b"
    assert first({"a": 10, "b": 1}, {"a": 90, "b": 60}) == "b"


def test_sglang_28933_load_is_counted_by_each_ones_own_size() -> None:
    small, large = replica("small", slots=4), replica("large", slots=64)
    assert first({"small": 2, "large": 20}, {}, pool=[small, large], asked=read_prompt(b"")) == "large"
    homes = Counter(first({}, {}, pool=[small, large]) for _ in range(300))
    assert homes["large"] > 240
    assert first({"small": 3, "large": 3}, {"small": 30}, pool=[small, large]) == "large"


def test_lightllm_1433_calls_of_the_past_are_no_load() -> None:
    """Counters that only grew starved a replica that had been idle for long, or flooded one that was new."""
    served: Counter[str] = Counter()
    load: Counter[str] = Counter()
    for turn in range(400):
        pool = POOL[:3] if turn < 200 else POOL  # one that has never had a call joins late
        chosen = preference(pool, load, {}, turn)[0].id
        served[chosen] += turn >= 200
        load[chosen] += 1
        load[chosen] -= 1  # it ends
    assert set(served.values()) == {50}


def test_stale_metrics_send_no_herd_to_one_replica() -> None:
    """Between two reports our own calls count at once."""
    load: Counter[str] = Counter()
    for turn in range(40):
        load[preference(POOL, load, {}, turn)[0].id] += 1
    assert set(load.values()) == {10}
