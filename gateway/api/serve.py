"""THE LIFE OF ONE CALL: it names its steps; everything that is acquired is given back by leaving a `with` block."""

import traceback

from gateway.access.caller import Caller, KeyRefused
from gateway.api import images, who
from gateway.api.body import ClientGone, parse_object, read_body
from gateway.api.call import Call, read_call
from gateway.api.delivery import Delivery
from gateway.api.endpoint import Endpoint
from gateway.api.exchange import NOTHING, Exchange, Headers
from gateway.api.fetching import fetch_images
from gateway.api.intake import NO_TURN, is_small
from gateway.api.looping import Attempt
from gateway.api.once import HEADER as IDEMPOTENCY_KEY
from gateway.api.once import Once
from gateway.api.order import Order, on_slow_lane, place
from gateway.api.queueing import Turn
from gateway.api.receipts import receipt, refused_receipt, slow_receipt
from gateway.api.refusals import refusal_of
from gateway.api.settling import Settling
from gateway.errors import Refusal
from gateway.limits.hold import Ask, Hold
from gateway.limits.refusals import QuotaUsedUp, SnapshotStale
from gateway.wiring import House


async def serve_call(house: House, endpoint: Endpoint, exchange: Exchange) -> None:
    """Serve one paid call; whatever goes wrong in it becomes an answer here, once."""
    try:
        with house.drain:
            await _live(house, endpoint, exchange)
    except ClientGone:
        house.log.debug("client_gone", id=exchange.request_id)
    except Exception as error:
        _refuse(house, endpoint, exchange, error)


async def _live(house: House, endpoint: Endpoint, exchange: Exchange) -> None:
    caller = await who.identify(house, exchange)  # first: who has no key makes us read nothing
    with NO_TURN if is_small(exchange.headers) else await house.intake.turn(caller.account_id) as turn:
        raw = await read_body(exchange.receive, exchange.headers, house.settings.body_limit_bytes)
        turn.arrived()
        with Attempt(house.loops, caller.key_id, raw):
            call = read_call(endpoint, parse_object(raw), len(raw))
            images.check(call.addressed, house.fetcher)
            caller, order = await _order(house, exchange, call, caller)
            turn.over()
            if IDEMPOTENCY_KEY in exchange.headers:
                await _run_once(house, exchange, call, caller, order, raw=raw)
            else:
                await _run(house, exchange, call, caller, order)


async def _run_once(house: House, exchange: Exchange, call: Call, caller: Caller, order: Order, *, raw: bytes) -> None:
    """The first call under its idempotency key runs; who comes again is given what it got, if he still may have it."""
    once = Once(house, exchange, caller, call, raw)
    recorded = await once.known()
    if recorded is not None:
        _agree(house, exchange, call, await who.identify(house, exchange, seconds_old=1.0))
        once.replay(recorded)
        return
    with once:
        await _run(house, exchange, call, caller, order, once=once)


async def _run(house: House, exchange: Exchange, call: Call, caller: Caller, order: Order, *, once: Once | None = None) -> None:
    try:
        await _run_held(house, exchange, call, caller, order, once=once)
    except QuotaUsedUp as spent:
        slow = on_slow_lane(order, caller.plan, spent)
        if slow is None:
            raise
        try:
            await _run_held(house, exchange, call, caller, slow, once=once)
        except QuotaUsedUp as capped:
            if capped.scope == "account":  # the lane was closed meanwhile, by another plan
                raise
            # The slow lane took off the key's own cap what the call would cost.
            raise QuotaUsedUp(capped.scope, order.numbers.key_quota, capped.used, capped.resets_at_ms) from None


async def _run_held(house: House, exchange: Exchange, call: Call, caller: Caller, order: Order, *, once: Once | None) -> None:
    if house.gate.spent:
        await house.gate.spent.check(_ask(exchange, call, order, caller))
    turn = Turn(house, exchange, call, order)
    with turn.slot() as slot:
        if not call.addressed:  # a slot must not idle while images are fetched
            slot.try_now(turn.preference)  # leaves in one write with the admit
        hold, turn.order = await _hold(house, exchange, call, order, caller)
        with hold, Settling(house, exchange, hold, call, turn.order) as progress, once.until(progress) if once else NOTHING:
            exchange.receipt += _receipt(house, exchange, hold, turn.order)
            if call.addressed:
                await fetch_images(house, exchange, call, caller.account_id)
            with exchange.kept_warm(house.settings.commit_seconds, is_on=call.stream):
                await Delivery(house, exchange, call, turn, progress).run(slot)


def _receipt(house: House, exchange: Exchange, hold: Hold, order: Order) -> Headers:
    now_ms = house.clock.now_ms()
    if order.spent is not None:
        return slow_receipt(order.spent, now_ms, exchange.dialect)
    return receipt(hold, now_ms, exchange.dialect)


async def _order(house: House, exchange: Exchange, call: Call, caller: Caller) -> tuple[Caller, Order]:
    """What the call comes to. A no is said on a snapshot of at most a second: the gate, which would find an old one out, is
    never asked by a call that is refused before it."""
    try:
        return caller, _agree(house, exchange, call, caller)
    except (KeyRefused, Refusal):
        fresh = await who.identify(house, exchange, seconds_old=1.0)
        if fresh.version == caller.version:
            raise
        return fresh, _agree(house, exchange, call, fresh)


def _agree(house: House, exchange: Exchange, call: Call, caller: Caller) -> Order:
    order = place(call, caller, house.menu)
    who.check(house, exchange, caller, order.model.id)
    return order


async def _hold(house: House, exchange: Exchange, call: Call, order: Order, caller: Caller) -> tuple[Hold, Order]:
    """The fare, held; with a caller that is read anew, and an order placed anew, when its snapshot turns out to be an old one."""
    try:
        return await house.gate.admit(_ask(exchange, call, order, caller)), order
    except SnapshotStale:
        fresh = await who.reload(house, caller)
        placed = _agree(house, exchange, call, fresh)
        return await house.gate.admit(_ask(exchange, call, placed, fresh)), placed


def _ask(exchange: Exchange, call: Call, order: Order, caller: Caller) -> Ask:
    return Ask(
        request_id=exchange.request_id,
        account=caller.account_id,
        key=caller.key_id,
        version=caller.version,
        fare=order.fare,
        numbers=order.numbers,
        model=order.model.id,
        endpoint=call.endpoint.name,
        stream=call.stream,
    )


def _refuse(house: House, endpoint: Endpoint, exchange: Exchange, error: Exception) -> None:
    now_ms = house.clock.now_ms()
    refusal = refusal_of(error, now_ms)
    code = refusal.code or str(refusal.status)
    house.metrics.refused(endpoint.name, code)
    house.log.info("refused", id=exchange.request_id, endpoint=endpoint.name, status=refusal.status, code=code)
    if isinstance(error, QuotaUsedUp):
        exchange.receipt += refused_receipt(error, now_ms, exchange.dialect)
    if refusal.status >= 500 and not isinstance(error, Refusal):
        house.log.error(
            "call_failed", id=exchange.request_id, error=type(error).__name__, why=str(error)[:300], at=_places(error)
        )
    try:
        exchange.refuse(refusal)
    except ClientGone:
        house.log.debug("client_gone", id=exchange.request_id)


def _places(error: Exception) -> list[str]:
    """The innermost frames: where to look at 3 a.m., and nothing of what was in them."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
