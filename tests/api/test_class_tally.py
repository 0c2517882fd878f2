"""Which accounts have how much of a class: told of a few, remembered of not many."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from gateway import class_tally
from gateway.class_tally import ACCOUNTS_TOLD, HALF_LIFE_SECONDS, ClassTally, Shares
from gateway.progress import Progress


def told(shares: Shares) -> dict[tuple[str, str], float]:
    [family] = shares.collect()
    return {(sample.labels["class"], sample.labels["account"]): round(sample.value, 3) for sample in family.samples}


def test_shares_are_of_recent_work_in_one_class() -> None:
    clock = [0.0]
    shares = Shares(lambda: clock[0])
    shares.add("free", "a", 100)
    shares.add("pro", "b", 7)
    assert told(shares) == {("free", "a"): 1.0, ("pro", "b"): 1.0}
    clock[0] = HALF_LIFE_SECONDS
    shares.add("free", "c", 50)
    assert told(shares) == {("free", "a"): 0.5, ("free", "c"): 0.5, ("pro", "b"): 1.0}


def test_who_has_done_nothing_for_long_is_forgotten() -> None:
    clock = [0.0]
    shares = Shares(lambda: clock[0])
    shares.add("free", "a", 1_000_000)
    assert told(shares) == {("free", "a"): 1.0}
    clock[0] = 30 * HALF_LIFE_SECONDS
    assert told(shares) == {}


def test_a_thousand_accounts_are_ten_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_tally, "ACCOUNTS_KEPT", 100)
    shares = Shares()
    for number in range(1000):
        shares.add("free", f"a{number}", number + 1)
    found = told(shares)
    assert len(found) == ACCOUNTS_TOLD
    assert max(found, key=lambda one: found[one]) == ("free", "a999")


def test_what_was_refused_failed_and_taken_back_is_told_apart() -> None:
    registry = CollectorRegistry()
    tally = ClassTally(registry)
    tally.ended("pro", "a", "posted", "answered", Progress(returned=2, completion_tokens=5), target_ms=None)
    tally.ended("pro", "a", "voided", "shed", Progress(), target_ms=None)
    tally.ended("pro", "a", "voided", "engine_broke", Progress(completion_tokens=3), target_ms=100)
    page = generate_latest(registry).decode()
    for outcome in ("served", "refused", "failed"):
        assert f'faregate_class_calls_total{{class="pro",outcome="{outcome}"}} 1.0' in page
    assert 'faregate_class_preempted_total{class="pro"} 2.0' in page
    assert 'faregate_class_useful_tokens_total{class="pro",kind="completion"} 5.0' in page
    assert page.count("faregate_class_ttft_total{") == page.count('faregate_class_ttft_total{class="pro",target=') == 2
    assert 'target="missed"} 0.0' in page
