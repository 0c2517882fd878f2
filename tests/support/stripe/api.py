"""The API itself, apart from HTTP: who may ask, what is asked, the answer kept for its key, and what is expanded in it."""

from dataclasses import dataclass
from typing import Any

from tests.support.stripe import form, invoices, life
from tests.support.stripe.faults import NOT_STOOD_IN, Fault
from tests.support.stripe.idempotency import Answers
from tests.support.stripe.parameters import check
from tests.support.stripe.post import Post
from tests.support.stripe.routes import ROUTES, Route
from tests.support.stripe.world import API_VERSION, Thing, World, shown


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `text`: its query, or its form-encoded body. Headers by their lower-case names."""

    method: str
    path: str
    text: str
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    headers: dict[str, str]


@dataclass(slots=True)
class Trouble:
    """What happens to the next requests of a path: `status` instead of being done, or done with the answer lost."""

    path: str
    status: int
    count: int = 1
    is_done: bool = False

    def meets(self, asked: Asked) -> bool:
        return self.count > 0 and asked.path.startswith(self.path)


class Api:
    def __init__(self, world: World) -> None:
        self.world = world
        self.post = Post(world)
        self.answers = Answers(world)
        self.journal: list[Thing] = []
        self.troubles: list[Trouble] = []
        world.watch("payment_intent.succeeded", lambda intent: invoices.intent_succeeded(world, intent))
        world.watch("invoice.paid", lambda invoice: life.invoice_paid(world, invoice))
        world.watch("invoice.overdue", lambda invoice: life.invoice_overdue(world, invoice))

    def forget(self) -> None:
        """As new, but for the time and the post's habits."""
        self.world.forget()
        self.answers.forget()
        self.post.deliveries.clear()
        self.journal.clear()
        self.troubles.clear()

    def ask(self, asked: Asked) -> Answer:
        request_id = self.world.id("req")
        key = asked.headers.get("idempotency-key")
        self.journal.append({"method": asked.method, "path": asked.path, "text": asked.text, "idempotency_key": key})
        trouble = next((one for one in self.troubles if one.meets(asked)), None)
        if trouble is not None:
            trouble.count -= 1
            if not trouble.is_done:
                return _failed(Fault("Something went wrong on our end.", status=trouble.status, kind="api_error"), request_id)
        answer = self._answer(asked, key, request_id)
        if trouble is not None:
            return _failed(Fault("The answer was lost.", status=trouble.status, kind="api_error"), request_id)
        return answer

    def _answer(self, asked: Asked, key: str | None, request_id: str) -> Answer:
        try:
            _check_caller(asked)
            route, ids = _find(asked)
            given = form.decode(asked.text)
            request = [asked.method, asked.path, given]
            kept = self.answers.find(key, request) if asked.method != "GET" else None
            if kept is not None:
                headers = {"request-id": request_id, "original-request": kept.request_id, "idempotent-replayed": "true"}
                return Answer(kept.status, kept.body, headers)
            params = check(given, route.params)
            route.check_heeded(params)
        except Fault as fault:
            return _failed(fault, request_id)
        self.world.request = {"id": request_id, "idempotency_key": key}
        try:
            found = route.answer(self.world, params, **ids)
            answer = Answer(200, self._expanded(shown(found), params, asked.path), {"request-id": request_id})
        except Fault as fault:
            answer = _failed(fault, request_id)
        finally:
            self.world.request = {"id": None, "idempotency_key": None}
        if asked.method != "GET":
            self.answers.keep(key, request, request_id=request_id, status=answer.status, body=answer.body)
        return answer

    def _expanded(self, answer: Thing, params: Thing, path: str) -> Thing:
        if answer["object"] == "list":
            answer["url"] = path
        for one in params.get("expand", []):
            self._expand(answer, one.split("."), one)
        return answer

    def _expand(self, place: Any, path: list[str], whole: str) -> None:
        if isinstance(place, list):
            for one in place:
                self._expand(one, path, whole)
            return
        head, rest = path[0], path[1:]
        if head not in place:
            raise Fault(f"This property cannot be expanded ({whole}).", param="expand")
        if isinstance(place[head], str):
            if place[head] not in self.world.things:
                raise Fault(f"This property cannot be expanded ({whole}).", param="expand")
            place[head] = shown(self.world.things[place[head]])
        elif isinstance(place[head], list) and not rest:
            place[head] = [shown(self.world.things[one]) if isinstance(one, str) else one for one in place[head]]
        if rest and place[head] is not None:
            self._expand(place[head], rest, whole)


def _check_caller(asked: Asked) -> None:
    """Raises: Fault."""
    scheme, _, key = asked.headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not key.startswith(("sk_test_", "rk_test_")):
        raise Fault("Invalid API Key provided.", status=401)
    version = asked.headers.get("stripe-version", API_VERSION)
    if version != API_VERSION:
        raise Fault(f"The stand-in speaks {API_VERSION} alone, not {version}.")


def _find(asked: Asked) -> tuple[Route, dict[str, str]]:
    for route in ROUTES:
        found = route.path.match(asked.path)
        if found and route.method == asked.method:
            return route, found.groupdict()
    raise Fault(f"Unrecognized request URL ({asked.method}: {asked.path}).", status=404)


def _failed(fault: Fault, request_id: str) -> Answer:
    headers = {"request-id": request_id}
    if fault.status == NOT_STOOD_IN:  # it would be the same again
        headers["stripe-should-retry"] = "false"
    return Answer(fault.status, fault.body, headers)
