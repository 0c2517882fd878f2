"""The fare of a call, known before it is sent, from the request alone; never from tokens."""

# A CHECK of the ledger (`requests_fare_bounds`) says the same.
FARE_MAX = 1_000_000


class FareOutOfBounds(Exception):
    """A part of the fare is not a whole number of at least one, or the whole is more than `FARE_MAX`."""


def fare(model_fare: int, n: int = 1, items: int = 1, items_per_fare: int = 1) -> int:
    """`model_fare x n x ceil(items / items_per_fare)` fare units.

    `items` are embedding inputs, rerank documents or batch lines; 1 for a chat. Raises: FareOutOfBounds.
    """
    for name, value in (("model_fare", model_fare), ("n", n), ("items", items), ("items_per_fare", items_per_fare)):
        if value < 1:
            raise FareOutOfBounds(f"{name} is {value}; it has to be at least 1")
    whole = model_fare * n * -(-items // items_per_fare)
    if whole > FARE_MAX:
        raise FareOutOfBounds(f"the fare of this call would be {whole}; one call may cost at most {FARE_MAX}: split it")
    return whole
