"""Money smaller than a cent: micro-dollars, a millionth of the currency that prices are in, whole and rounded half up once."""

from fractions import Fraction

MICROS_PER_CENT = 10_000


def half_up(exact: Fraction | int, divisor: int = 1) -> int:
    """The whole number nearest to `exact / divisor`; of two, the larger."""
    part = Fraction(exact) / divisor
    return (2 * part.numerator + part.denominator) // (2 * part.denominator)


def dollars(micros: int, *, digits: int = 2) -> str:
    """As people read it, `-$1,234.50`; up to 6 digits after the point, rounded half up."""
    scaled = half_up(abs(micros), 10 ** (6 - digits))
    whole, rest = divmod(scaled, 10**digits)
    return f"{'-' if micros < 0 and scaled else ''}${whole:,}{f'.{rest:0{digits}}' if digits else ''}"
