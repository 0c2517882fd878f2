"""What providers that sell by the token ask for a model: the one file that imports genai-prices, which carries them."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction

import genai_prices
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, ModelPrice, Provider

from billing.money import half_up
from billing.provider_names import PROVIDER_NAMES
from billing.savings import TokenPrice

SOURCE = f"genai-prices {genai_prices.__version__}"


def token_prices(models: Iterable[str], on: date) -> list[TokenPrice]:
    """The prices in force at the end of that day (UTC), by our ids; a model that nobody sells is left out. Nothing is fetched."""
    providers = {provider.id: provider for provider in get_snapshot().providers}
    at = datetime.combine(on, time.max, UTC)
    found = [
        _price(model, providers[provider], sold_as, at)
        for model in sorted(set(models))
        for provider, sold_as in PROVIDER_NAMES.get(model, {}).items()
        if provider in providers
    ]
    return [price for price in found if price is not None]


def _price(model: str, provider: Provider, sold_as: str, at: datetime) -> TokenPrice | None:
    """None where the provider does not sell it any more, or not for a price that is the same for every token."""
    info = next((one for one in provider.models if one.id == sold_as), None)
    prices = None if info is None else _in_force(info, at)
    if prices is None:
        return None
    given, cached, output = (_micros(prices, name) for name in ("input_mtok", "cache_read_mtok", "output_mtok"))
    if given is None or output is None:
        return None
    page = provider.pricing_urls[0] if provider.pricing_urls else None
    return TokenPrice(model, provider.id, provider.name, sold_as, given, given if cached is None else cached, output, page)


def _in_force(info: ModelInfo, at: datetime) -> ModelPrice | None:
    return None if info.deprecated else info.get_prices(at)


def _micros(prices: ModelPrice, name: str) -> int | None:
    price = getattr(prices, name, None)
    return half_up(Fraction(price) * 1_000_000) if isinstance(price, Decimal) else None
