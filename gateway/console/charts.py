"""Bars as geometry: a template draws them as SVG, so that a chart needs no script and can be read without seeing it."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, AXIS = 720, 168, 22
GAP_SHARE = 0.28


@dataclass(frozen=True, slots=True)
class Bar:
    """`top` of the whole bar; `second_top` divides it in two. In units of the view box."""

    left: float
    width: float
    top: float
    height: float
    second_height: float
    label: str
    said: str


@dataclass(frozen=True, slots=True)
class Chart:
    """`grid`: heights with what they stand for. `ticks`: labels under some of the bars."""

    bars: tuple[Bar, ...]
    grid: tuple[tuple[float, int], ...]
    ticks: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT + AXIS

    @property
    def floor(self) -> int:
        return HEIGHT


def bars(points: Sequence[tuple[str, int, int, str]], *, ticks_max: int = 6) -> Chart:
    """Of (label, value, second value that stands on it, what is said of both)."""
    most = round_up(max((first + second for _, first, second, _ in points), default=0))
    step = WIDTH / max(1, len(points))
    drawn = []
    for place, (label, first, second, said) in enumerate(points):
        lower, upper = HEIGHT * first / most, HEIGHT * second / most
        left = place * step + step * GAP_SHARE / 2
        width = step * (1 - GAP_SHARE)
        drawn.append(
            Bar(round(left, 2), round(width, 2), round(HEIGHT - lower, 2), round(lower, 2), round(upper, 2), label, said)
        )
    every = max(1, -(-len(points) // ticks_max))
    shown = [bar for place, bar in enumerate(reversed(drawn)) if place % every == 0]
    grid = [(round(HEIGHT - HEIGHT * part / 4, 2), most * part // 4) for part in (1, 2, 3, 4) if most >= 4 or part == 4]
    return Chart(tuple(drawn), tuple(grid), tuple((bar.left + bar.width / 2, bar.label) for bar in shown))


def round_up(value: int) -> int:
    """To 4, 8, 12 or 20 times a power of ten: the top of an axis whose quarters are whole."""
    power = 1
    while True:
        for first in (4, 8, 12, 20):
            if value <= first * power:
                return first * power
        power *= 10
