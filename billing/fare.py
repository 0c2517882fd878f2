"""The fare of a call, known before it is sent, from the request alone; never from tokens."""

# A CHECK of the ledger (`requests_fare_bounds`) says the same.
FARE_MAX = 1_000_000


class FareOutOfBounds(Exception):
    """A part of the fare is less than it can be, or the whole is more than `FARE_MAX`."""


def fare(model_fare: int, n: int = 1, items: int = 1, items_per_fare: int = 1) -> int:
    """`model_fare x n x ceil(items / items_per_fare)` fare units.

    `items` are embedding inputs, rerank documents or batch lines; 1 for a chat. An `n` of 0 generates nothing (tokens that are
    only counted), and costs nothing. Raises: FareOutOfBounds.
    """
    least = (("model_fare", model_fare, 1), ("n", n, 0), ("items", items, 1), ("items_per_fare", items_per_fare, 1))
    for name, value, at_least in least:
        if value < at_least:
            raise FareOutOfBounds(f"{name} is {value}; it has to be at least {at_least}")
    whole = model_fare * n * -(-items // items_per_fare)
    if whole > FARE_MAX:
        raise FareOutOfBounds(f"the fare of this call would be {whole}; one call may cost at most {FARE_MAX}: split it")
    return whole
