"""What is served here: models with their replicas, by every name that a client may use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from backends.dedicated import Way, pool_name, ways
from backends.fleet import Replica
from gateway.errors import Refusal
from models.catalogue import Catalogue, Model

Pools = Mapping[str, Sequence[Replica]]
Dedicated = Mapping[tuple[str, str], Sequence[Replica]]
"""By account and model."""


@dataclass(frozen=True, slots=True)
class Dish:
    """A model as it is served to one caller: the ways that its calls go, one or two. `context` is the smallest that a replica on
    them gives it; None: unknown. `lacks` are the endpoints that one of their engines does not have."""

    model: Model
    ways: Sequence[Way]
    context: int | None
    lacks: frozenset[str] = frozenset()


class Menu:
    """What is served, by every name that a client may use for it; to the accounts with replicas of their own, also by those."""

    def __init__(
        self,
        catalogue: Catalogue,
        pools: Pools,
        dedicated: Dedicated = MappingProxyType({}),
        open_: Callable[[str], Sequence[Replica]] | None = None,
    ) -> None:
        """`open_` tells of a pool those that may be given calls at the moment of asking, in a list that stays the same one; by
        itself, all. Raises: ModelUnknown for a pool whose model is not in the catalogue.
        """
        self._catalogue = catalogue
        self._pools, self._dedicated = pools, dedicated
        self._served = Catalogue(catalogue.served(pools.keys()))
        self._dishes: dict[str, Dish] = {}
        self._own: dict[tuple[str, str], Dish] = {}
        for model_id, replicas in pools.items():
            model = catalogue.resolve(model_id)
            dish = _dish(model, ways(model_id, (), replicas), open_)
            self._dishes.update(dict.fromkeys((model.id, *model.aliases), dish))
        for (account, model_id), own in dedicated.items():
            model = catalogue.resolve(model_id)
            dish = _dish(model, ways(model_id, own, pools.get(model_id, ())), open_)
            self._own.update({(account, name): dish for name in (model.id, *model.aliases)})

    def find(self, name: str, account: str = "") -> Dish:
        """`account` is the caller's, by its name. Raises: ModelUnknown; Refusal (404) for one that no replica serves to it."""
        dish = self._dish(name, account)
        if dish is not None:
            return dish
        # In other letters, or unknown (then what is near is what is served), or not for this caller.
        knows = self._catalogue if self._catalogue.knows(name) else self._served
        dish = self._dish(knows.resolve(name).id, account)
        if dish is None:
            raise Refusal(
                404,
                f"The model {name!r} is not served here at present; GET /v1/models lists those that are.",
                code="model_not_found",
                param="model",
            )
        return dish

    def _dish(self, name: str, account: str) -> Dish | None:
        if self._own and (own := self._own.get((account, name))) is not None:
            return own
        return self._dishes.get(name)

    def dishes(self) -> list[Dish]:
        """What is served to everybody, each once, by its model's id."""
        return [self._dishes[model_id] for model_id in sorted(model.id for model in self._served.models)]

    def pool_names(self) -> list[str]:
        """As the queue names them."""
        return [*self._pools, *(pool_name(model_id, account) for account, model_id in self._dedicated)]

    def pools(self, account: str) -> Pools:
        """By model, the replicas that serve it to this account; its own alone, where it has some."""
        own = {model_id: replicas for (name, model_id), replicas in self._dedicated.items() if name == account}
        return {**self._pools, **own} if own else self._pools


def _dish(model: Model, found: Sequence[Way], open_: Callable[[str], Sequence[Replica]] | None) -> Dish:
    replicas = [replica for way in found for replica in way.replicas]
    context = min((replica.context for replica in replicas if replica.context), default=model.context)
    if open_ is not None:
        found = [replace(way, replicas=open_(way.pool)) for way in found]
    return Dish(model, found, context, frozenset().union(*(replica.engine.lacks_endpoints for replica in replicas)))
