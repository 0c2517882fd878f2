"""What is served here: models with their replicas, by every name that a client may use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backends.fleet import Replica
from gateway.errors import Refusal
from models.catalogue import Catalogue, Model


@dataclass(frozen=True, slots=True)
class Dish:
    """A model as it is served here. `context` is the smallest that a replica gives it; None: unknown. `lacks` are the endpoints
    that one of its engines does not have."""

    model: Model
    replicas: Sequence[Replica]
    context: int | None
    lacks: frozenset[str] = frozenset()


class Menu:
    """What is served, by every name that a client may use for it."""

    def __init__(self, catalogue: Catalogue, pools: Mapping[str, Sequence[Replica]]) -> None:
        """Raises: ModelUnknown for a pool whose model is not in the catalogue."""
        self._catalogue = catalogue
        self._served = Catalogue(catalogue.served(pools.keys()))
        self._dishes: dict[str, Dish] = {}
        for model_id, replicas in pools.items():
            model = catalogue.resolve(model_id)
            context = min((replica.context for replica in replicas if replica.context), default=model.context)
            lacks = frozenset().union(*(replica.engine.lacks_endpoints for replica in replicas))
            for name in (model.id, *model.aliases):
                self._dishes[name] = Dish(model, replicas, context, lacks)

    def find(self, name: str) -> Dish:
        """Raises: ModelUnknown, Refusal (404) for a model that no replica serves."""
        dish = self._dishes.get(name)
        if dish is not None:
            return dish
        if self._catalogue.knows(name) and not self._served.knows(name):
            raise Refusal(
                404,
                f"The model {name!r} is not served here at present; GET /v1/models lists those that are.",
                code="model_not_found",
                param="model",
            )
        return self._dishes[self._served.resolve(name).id]  # in other letters, or unknown: what is near is what is served

    def dishes(self) -> list[Dish]:
        """Each once, by its model's id."""
        return [self._dishes[model_id] for model_id in sorted(model.id for model in self._served.models)]
