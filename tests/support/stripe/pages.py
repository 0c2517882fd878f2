"""The hosted pages, as plain forms: Checkout, authentication, the portal, an invoice."""

from html import escape

from tests.support.stripe import portal
from tests.support.stripe.world import Thing, World

_STYLE = (
    "body{font:16px/1.5 system-ui;max-width:36rem;margin:3rem auto;padding:0 1rem}"
    "label{display:block;margin:.75rem 0}input{font:inherit}"
)
_CARD = (
    '<label>Card number <input name="number" inputmode="numeric" required value="4242 4242 4242 4242" autocomplete="off"></label>'
)


def checkout(world: World, session: Thing, problem: str = "") -> str:
    what = "".join(_wanted(world, price, quantity) for price, quantity in session["_wanted"])
    code = '<label>Promotion code <input name="code"></label>' if session["allow_promotion_codes"] else ""
    email = _known_email(world, session)
    form = (
        f'<label>Email <input name="email" type="email" required value="{escape(email)}"></label>{_CARD}{code}'
        f'<button type="submit">{"Subscribe" if session["mode"] == "subscription" else "Pay"}</button>'
    )
    back = f'<p><a href="{escape(session["cancel_url"])}">Back</a></p>' if session["cancel_url"] else ""
    total = _money(session["amount_total"], session["currency"])
    return _page("Checkout", f"<ul>{what}</ul><p>Total {total}</p>{_form(form)}{back}", problem)


def authenticate() -> str:
    buttons = '<button name="answer" value="yes">Complete</button> <button name="answer" value="no">Fail</button>'
    return _page("Your bank asks", f"<p>Is it you who pays?</p>{_form(buttons)}")


def portal_page(world: World, session: Thing, problem: str = "") -> str:
    subscription = portal.subscription_of(world, session)
    parts = [_subscription(world, session, subscription)] if subscription else ["<p>No subscription.</p>"]
    parts.append(f"<h2>Card</h2>{_form(_CARD + _button('card', 'Save card'))}")
    rows = "".join(
        f'<li><a href="{escape(invoice["hosted_invoice_url"] or "")}">{escape(invoice["number"] or "draft")}</a>: '
        f"{_money(invoice['total'], invoice['currency'])}, {invoice['status']}</li>"
        for invoice in world.all("invoice", customer=session["customer"])
    )
    back = f'<p><a href="{escape(session["return_url"])}">Return</a></p>' if session["return_url"] else ""
    return _page("Your subscription", f"{''.join(parts)}<h2>Invoices</h2><ul>{rows}</ul>{back}", problem)


def invoice(found: Thing, problem: str = "") -> str:
    parts = [f"<p>{_money(found['total'], found['currency'])}, {found['status']}</p>"]
    if found["status"] == "open":
        parts.append(_form(_CARD + "<button>Pay</button>"))
    return _page(f"Invoice {escape(found['number'] or '')}", "".join(parts), problem)


def over(text: str) -> str:
    return _page("Over", f"<p>{escape(text)}</p>")


def _subscription(world: World, session: Thing, subscription: Thing) -> str:
    item = subscription["items"]["data"][0]
    name = escape(world.get("product", item["price"]["product"])["name"])
    parts = [f"<p>{name}, {subscription['status']}{', ends with its period' if subscription['cancel_at_period_end'] else ''}</p>"]
    for price in portal.prices_on_offer(world, session):
        if price["id"] != item["price"]["id"]:
            label = f"Change to {escape(world.get('product', price['product'])['name'])}"
            parts.append(_form(f'<input type="hidden" name="price" value="{price["id"]}">{_button("change", label)}'))
    parts.append(
        _form(_button("keep", "Keep") if subscription["cancel_at_period_end"] else _button("cancel", "Cancel at period end"))
    )
    return "".join(parts)


def _wanted(world: World, price: Thing, quantity: int) -> str:
    name = escape(world.get("product", price["product"])["name"])
    return f"<li>{quantity} × {name}: {_money(price['unit_amount'] * quantity, price['currency'])}</li>"


def _known_email(world: World, session: Thing) -> str:
    known = world.things[session["customer"]]["email"] if session["customer"] else session["customer_email"]
    return known or ""


def _button(action: str, label: str) -> str:
    return f'<button name="action" value="{action}">{label}</button>'


def _form(inside: str) -> str:
    return f'<form method="post">{inside}</form>'


def _money(cents: int, currency: str) -> str:
    return f"{cents / 100:,.2f} {currency.upper()}"


def _page(title: str, inside: str, problem: str = "") -> str:
    told = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>'
        f"<body><main><h1>{title}</h1>{told}{inside}</main></body></html>"
    )
