"""`GET /v1/models` in Anthropic's shape, for clients that say which version of its API they speak."""

from collections.abc import Mapping
from typing import Any

from gateway.access.caller import Caller
from gateway.errors import Refusal
from gateway.menu import Dish, Menu

# Such a header is on each request of Anthropic's clients, and on nobody else's.
VERSION_HEADER = "anthropic-version"
# What Anthropic's documentation gives where a release date is unknown; catalogue entries have none.
CREATED = "1970-01-01T00:00:00Z"
LIMIT_DEFAULT, LIMIT_MAX = 20, 1000
LIMIT_DIGITS = 9  # Python itself refuses to read thousands of them
# Claude Code takes no other names from a gateway's list; an alias like this is how an operator gives it one.
DISCOVERED = ("claude", "anthropic")


def model_page(menu: Menu, caller: Caller, query: Mapping[str, str]) -> dict[str, Any]:
    """The models that this key may use. Raises: Refusal (400) for a limit or a place in the list that is not there."""
    pools = menu.pools(caller.account_name)
    dishes = [menu.find(model_id, caller.account_name) for model_id in sorted(pools) if pools[model_id]]
    cards = [_card(name, dish) for dish in dishes if _is_open(dish, caller) for name in _names(dish)]
    limit = _limit(query)
    if "before_id" in query:
        end = _place(cards, "before_id", query)
        start = max(0, end - limit)
        has_more = start > 0
    else:
        start = _place(cards, "after_id", query) + 1 if "after_id" in query else 0
        end = start + limit
        has_more = end < len(cards)
    page = cards[start:end]
    return {
        "data": page,
        "has_more": has_more,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }


def model_info(menu: Menu, caller: Caller, name: str) -> dict[str, Any]:
    """Raises: ModelUnknown, Refusal (404)."""
    dish = menu.find(name, caller.account_name)
    return _card(dish.model.id, dish)


def _card(name: str, dish: Dish) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": dish.model.name,
        "created_at": CREATED,
        "lifecycle": "active",
        "max_input_tokens": dish.context,
    }


def _names(dish: Dish) -> list[str]:
    return [dish.model.id, *(alias for alias in dish.model.aliases if alias.startswith(DISCOVERED))]


def _is_open(dish: Dish, caller: Caller) -> bool:
    allowed = caller.allowed_models is None or dish.model.id in caller.allowed_models
    return allowed and caller.plan.opens(dish.model.tier)


def _limit(query: Mapping[str, str]) -> int:
    given = query.get("limit", str(LIMIT_DEFAULT))
    if not given.isdecimal() or len(given) > LIMIT_DIGITS or not 1 <= int(given) <= LIMIT_MAX:
        raise Refusal(400, f"limit must be a whole number of 1 to {LIMIT_MAX}.", param="limit", code="invalid_value")
    return int(given)


def _place(cards: list[dict[str, Any]], field: str, query: Mapping[str, str]) -> int:
    for index, card in enumerate(cards):
        if card["id"] == query[field]:
            return index
    raise Refusal(400, f"{field} must be the id of a model in this list.", param=field, code="invalid_value")
