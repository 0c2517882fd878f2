"""Which endpoints there are: the SDK's type of their parameters, which of those are heeded, and who answers."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import stripe.params as sdk
from stripe.params import billing_portal as sdk_portal
from stripe.params import checkout as sdk_checkout

from tests.support.stripe import cards, catalog, checkout, customers, invoices, payments, portal, post, schedules, subscriptions
from tests.support.stripe.faults import not_stood_in
from tests.support.stripe.world import Thing, World

Answer = Callable[..., Thing]


@dataclass(frozen=True, slots=True)
class Route:
    """`heeds`: parameters that change what happens, or may be given without a difference here (tax, texts)."""

    method: str
    path: re.Pattern[str]
    params: Any
    heeds: frozenset[str]
    answer: Answer

    def check_heeded(self, params: Thing) -> None:
        """Raises: Fault for what the real API would act on and this one would not."""
        ignored = sorted(params.keys() - self.heeds - {"expand"})
        if ignored:
            raise not_stood_in(f"{', '.join(ignored)} of {self.method} {self.path.pattern}")


def _route(method: str, path: str, params: Any, heeds: str, answer: Answer) -> Route:
    pattern = re.compile("^" + path.replace("{id}", r"(?P<which>[\w@.-]+)") + "$")
    return Route(method, pattern, params, frozenset(heeds.split()), answer)


def _got(kind: str) -> Answer:
    def answer(world: World, params: Thing, which: str) -> Thing:
        found = world.get(kind, which)
        return {"id": which, "object": kind, "deleted": True} if found.get("_deleted") else found

    return answer


def _matches(thing: Thing, name: str, value: Any) -> bool:
    if name == "created":
        compared = {"gt": thing[name].__gt__, "gte": thing[name].__ge__, "lt": thing[name].__lt__, "lte": thing[name].__le__}
        bounds = value if isinstance(value, dict) else {"gte": value, "lte": value}
        return all(compared[how](bound) for how, bound in bounds.items())
    if name == "lookup_keys":
        return thing["lookup_key"] in value
    if name == "ids":
        return thing["id"] in value
    if name == "types":
        return thing["type"] in value
    if name == "price":
        return any(item["price"]["id"] == value for item in thing["items"]["data"])
    if name == "subscription" and thing["object"] == "invoice":
        return bool(invoices.subscription_of(thing) == value)
    if name == "status" and value == "all":
        return True
    return bool(thing.get(name) == value)


def _pages(kind: str) -> Answer:
    """Newest first; ended subscriptions only when their status is asked for."""

    def answer(world: World, params: Thing) -> Thing:
        paging = ("limit", "starting_after", "ending_before", "expand")
        wanted = {name: value for name, value in params.items() if name not in paging}
        found = [one for one in world.all(kind) if not one.get("_deleted")]
        if kind == "subscription" and "status" not in wanted:
            found = [one for one in found if one["status"] != "canceled"]
        found = [one for one in reversed(found) if all(_matches(one, name, value) for name, value in wanted.items())]
        ids = [one["id"] for one in found]
        limit = params.get("limit", 10)
        if "starting_after" in params:
            world.get(kind, params["starting_after"], param="starting_after")
            found = found[ids.index(params["starting_after"]) + 1 :]
        elif "ending_before" in params:
            world.get(kind, params["ending_before"], param="ending_before")
            found = found[: ids.index(params["ending_before"])][-limit:]
        return {"object": "list", "data": found[:limit], "has_more": len(found) > limit}

    return answer


def _account(world: World, params: Thing) -> Thing:
    return {
        "id": "acct_standin", "object": "account", "charges_enabled": True, "country": "US", "default_currency": "usd",
        "details_submitted": True, "email": None, "payouts_enabled": True, "type": "standard", "metadata": {},
        "settings": {"dashboard": {"display_name": "Stand-In", "timezone": "Etc/UTC"}},
    }  # fmt: skip


def _line_items(world: World, params: Thing, which: str) -> Thing:
    return {"object": "list", "data": checkout.line_items(world, world.get("checkout.session", which)), "has_more": False}


_PAGE = "limit starting_after ending_before"
_SUBSCRIPTION = (
    "automatic_tax cancel_at cancel_at_period_end collection_method days_until_due default_payment_method description discounts "
    "items metadata off_session payment_behavior payment_settings proration_behavior trial_end trial_settings"
)
_SESSION = (
    "allow_promotion_codes automatic_tax billing_address_collection cancel_url client_reference_id customer customer_email "
    "customer_update discounts expires_at line_items locale metadata mode payment_intent_data payment_method_types "
    "subscription_data success_url tax_id_collection"
)
ROUTES = (
    _route("GET", "/v1/account", sdk.AccountRetrieveCurrentParams, "", _account),
    _route(
        "POST", "/v1/products", sdk.ProductCreateParams,
        "active description id metadata name shippable statement_descriptor tax_code unit_label url",
        catalog.create_product,
    ),
    _route("GET", "/v1/products", sdk.ProductListParams, f"active created ids {_PAGE}", _pages("product")),
    _route("GET", "/v1/products/{id}", sdk.ProductRetrieveParams, "", _got("product")),
    _route(
        "POST", "/v1/products/{id}", sdk.ProductUpdateParams,
        "active default_price description metadata name tax_code unit_label url",
        catalog.update_product,
    ),
    _route(
        "POST", "/v1/prices", sdk.PriceCreateParams,
        "active currency lookup_key metadata nickname product recurring tax_behavior transfer_lookup_key "
        "unit_amount",
        catalog.create_price,
    ),
    _route(
        "GET", "/v1/prices", sdk.PriceListParams,
        f"active created currency lookup_keys product type {_PAGE}",
        _pages("price"),
    ),
    _route("GET", "/v1/prices/{id}", sdk.PriceRetrieveParams, "", _got("price")),
    _route(
        "POST", "/v1/prices/{id}", sdk.PriceUpdateParams,
        "active lookup_key metadata nickname tax_behavior transfer_lookup_key",
        catalog.update_price,
    ),
    _route(
        "POST", "/v1/coupons", sdk.CouponCreateParams,
        "amount_off currency duration duration_in_months id max_redemptions metadata name percent_off "
        "redeem_by",
        catalog.create_coupon,
    ),
    _route("GET", "/v1/coupons/{id}", sdk.CouponRetrieveParams, "", _got("coupon")),
    _route(
        "POST", "/v1/promotion_codes", sdk.PromotionCodeCreateParams,
        "active code customer expires_at max_redemptions metadata promotion",
        catalog.create_promotion_code,
    ),
    _route("GET", "/v1/promotion_codes", sdk.PromotionCodeListParams, f"active code created {_PAGE}", _pages("promotion_code")),
    _route(
        "POST", "/v1/customers", sdk.CustomerCreateParams,
        "address balance description email invoice_settings metadata name payment_method phone shipping",
        customers.create,
    ),
    _route("GET", "/v1/customers", sdk.CustomerListParams, f"created email {_PAGE}", _pages("customer")),
    _route("GET", "/v1/customers/{id}", sdk.CustomerRetrieveParams, "", _got("customer")),
    _route(
        "POST", "/v1/customers/{id}", sdk.CustomerUpdateParams,
        "address balance description email invoice_settings metadata name phone shipping",
        customers.update,
    ),
    _route("DELETE", "/v1/customers/{id}", sdk.CustomerDeleteParams, "", customers.delete),
    _route("GET", "/v1/payment_methods", sdk.PaymentMethodListParams, f"customer type {_PAGE}", _pages("payment_method")),
    _route("GET", "/v1/payment_methods/{id}", sdk.PaymentMethodRetrieveParams, "", _got("payment_method")),
    _route("POST", "/v1/payment_methods/{id}/attach", sdk.PaymentMethodAttachParams, "customer", cards.attach),
    _route("POST", "/v1/payment_methods/{id}/detach", sdk.PaymentMethodDetachParams, "", cards.detach),
    _route(
        "POST", "/v1/subscriptions", sdk.SubscriptionCreateParams,
        f"customer trial_period_days {_SUBSCRIPTION}",
        subscriptions.create,
    ),
    _route(
        "GET", "/v1/subscriptions", sdk.SubscriptionListParams,
        f"collection_method created customer price status {_PAGE}",
        _pages("subscription"),
    ),
    _route("GET", "/v1/subscriptions/{id}", sdk.SubscriptionRetrieveParams, "", _got("subscription")),
    _route(
        "POST", "/v1/subscriptions/{id}", sdk.SubscriptionUpdateParams,
        f"pause_collection {_SUBSCRIPTION}",
        subscriptions.update,
    ),
    _route("DELETE", "/v1/subscriptions/{id}", sdk.SubscriptionCancelParams, "prorate", subscriptions.cancel),
    _route("POST", "/v1/subscriptions/{id}/resume", sdk.SubscriptionResumeParams, "proration_behavior", subscriptions.resume),
    _route("POST", "/v1/subscription_schedules", sdk.SubscriptionScheduleCreateParams, "from_subscription", schedules.create),
    _route(
        "GET", "/v1/subscription_schedules", sdk.SubscriptionScheduleListParams,
        f"created customer {_PAGE}",
        _pages("subscription_schedule"),
    ),
    _route("GET", "/v1/subscription_schedules/{id}", sdk.SubscriptionScheduleRetrieveParams, "", _got("subscription_schedule")),
    _route(
        "POST", "/v1/subscription_schedules/{id}", sdk.SubscriptionScheduleUpdateParams,
        "end_behavior phases proration_behavior",
        schedules.update,
    ),
    _route("POST", "/v1/subscription_schedules/{id}/release", sdk.SubscriptionScheduleReleaseParams, "", schedules.release),
    _route(
        "POST", "/v1/invoiceitems", sdk.InvoiceItemCreateParams,
        "amount currency customer description invoice metadata",
        invoices.create_item,
    ),
    _route(
        "POST", "/v1/invoices", sdk.InvoiceCreateParams,
        "auto_advance collection_method customer days_until_due description metadata "
        "pending_invoice_items_behavior",
        invoices.create,
    ),
    _route(
        "GET", "/v1/invoices", sdk.InvoiceListParams,
        f"collection_method created customer status subscription {_PAGE}",
        _pages("invoice"),
    ),
    _route("GET", "/v1/invoices/{id}", sdk.InvoiceRetrieveParams, "", _got("invoice")),
    _route("POST", "/v1/invoices/{id}/finalize", sdk.InvoiceFinalizeInvoiceParams, "auto_advance", invoices.finalize_by_id),
    _route("POST", "/v1/invoices/{id}/pay", sdk.InvoicePayParams, "off_session paid_out_of_band payment_method", invoices.pay),
    _route("POST", "/v1/invoices/{id}/send", sdk.InvoiceSendInvoiceParams, "", invoices.send),
    _route("POST", "/v1/invoices/{id}/void", sdk.InvoiceVoidInvoiceParams, "", invoices.void_by_id),
    _route("GET", "/v1/payment_intents/{id}", sdk.PaymentIntentRetrieveParams, "", _got("payment_intent")),
    _route("GET", "/v1/payment_intents", sdk.PaymentIntentListParams, f"created customer {_PAGE}", _pages("payment_intent")),
    _route("GET", "/v1/charges/{id}", sdk.ChargeRetrieveParams, "", _got("charge")),
    _route("GET", "/v1/charges", sdk.ChargeListParams, f"created customer payment_intent {_PAGE}", _pages("charge")),
    _route("POST", "/v1/refunds", sdk.RefundCreateParams, "amount charge metadata payment_intent reason", payments.refund),
    _route("GET", "/v1/refunds", sdk.RefundListParams, f"charge created payment_intent {_PAGE}", _pages("refund")),
    _route("POST", "/v1/checkout/sessions", sdk_checkout.SessionCreateParams, _SESSION, checkout.create),
    _route(
        "GET", "/v1/checkout/sessions", sdk_checkout.SessionListParams,
        f"created customer payment_intent status subscription {_PAGE}",
        _pages("checkout.session"),
    ),
    _route("GET", "/v1/checkout/sessions/{id}", sdk_checkout.SessionRetrieveParams, "", _got("checkout.session")),
    _route("GET", "/v1/checkout/sessions/{id}/line_items", sdk_checkout.SessionListLineItemsParams, _PAGE, _line_items),
    _route("POST", "/v1/checkout/sessions/{id}/expire", sdk_checkout.SessionExpireParams, "", checkout.expire),
    _route(
        "POST", "/v1/billing_portal/configurations", sdk_portal.ConfigurationCreateParams,
        "business_profile default_return_url features metadata",
        portal.create_configuration,
    ),
    _route(
        "GET", "/v1/billing_portal/configurations", sdk_portal.ConfigurationListParams,
        f"active is_default {_PAGE}",
        _pages("billing_portal.configuration"),
    ),
    _route(
        "POST", "/v1/billing_portal/sessions", sdk_portal.SessionCreateParams,
        "configuration customer flow_data return_url",
        portal.create_session,
    ),
    _route("GET", "/v1/events", sdk.EventListParams, f"created type types {_PAGE}", _pages("event")),
    _route("GET", "/v1/events/{id}", sdk.EventRetrieveParams, "", _got("event")),
    _route(
        "POST", "/v1/webhook_endpoints", sdk.WebhookEndpointCreateParams,
        "api_version description enabled_events metadata url",
        post.create,
    ),
    _route("GET", "/v1/webhook_endpoints", sdk.WebhookEndpointListParams, _PAGE, _pages("webhook_endpoint")),
    _route("DELETE", "/v1/webhook_endpoints/{id}", sdk.WebhookEndpointDeleteParams, "", post.delete),
)  # fmt: skip
