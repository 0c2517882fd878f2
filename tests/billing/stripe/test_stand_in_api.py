"""The stand-in's API as the SDK meets it: who may ask, what is checked, keys that make twice once, pages, expansion."""

from typing import Any

import pytest
import stripe

from tests.billing.stripe.conftest import Shop
from tests.support.stripe.running import KEY, StandInStripe


def test_a_key_again_gets_the_first_answer_and_makes_nothing(client: stripe.StripeClient) -> None:
    before = len(client.v1.customers.list({"limit": 100}).data)
    made = [client.v1.customers.create({"email": "a@b.test"}, {"idempotency_key": "once"}) for _ in range(3)]
    assert len({one.id for one in made}) == 1
    assert len(client.v1.customers.list({"limit": 100}).data) == before + 1
    answer = made[-1].last_response
    assert answer is not None
    assert answer.headers["idempotent-replayed"] == "true"


def test_a_key_with_other_parameters_is_refused(client: stripe.StripeClient) -> None:
    client.v1.customers.create({"email": "a@b.test"}, {"idempotency_key": "mine"})
    with pytest.raises(stripe.IdempotencyError, match="same parameters"):
        client.v1.customers.create({"email": "c@d.test"}, {"idempotency_key": "mine"})


def test_a_key_is_forgotten_after_a_day(client: stripe.StripeClient, stand_in: StandInStripe) -> None:
    first = client.v1.customers.create({"email": "a@b.test"}, {"idempotency_key": "day"})
    stand_in.advance(days=1)
    assert client.v1.customers.create({"email": "a@b.test"}, {"idempotency_key": "day"}).id != first.id


def test_a_retry_after_a_lost_answer_makes_one_thing(client: stripe.StripeClient, stand_in: StandInStripe) -> None:
    stand_in.steer("trouble", path="/v1/customers", status=500, count=2, is_done=True)
    seen = len(stand_in.journal())
    made = client.v1.customers.create({"email": "lost@b.test"})
    tries = stand_in.journal()[seen:]
    assert len(tries) == 3
    assert len({one["idempotency_key"] for one in tries}) == 1
    assert [one.id for one in client.v1.customers.list({"email": "lost@b.test"}).data] == [made.id]


def test_a_client_with_default_arguments_tries_once(stand_in: StandInStripe) -> None:
    stand_in.steer("trouble", path="/v1/account", status=500)
    http = stripe.RequestsClient(timeout=20)
    careless = stripe.StripeClient(KEY, base_addresses={"api": stand_in.url}, http_client=http)
    with pytest.raises(stripe.APIError):
        careless.v1.accounts.retrieve_current()
    http.close()  # type: ignore[no-untyped-call]  # the SDK left its types out here


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"name": "x", "colour": "red"}, "colour"),
        ({"description": "no name"}, "name"),
        ({"name": "x", "active": "perhaps"}, "active"),
        ({"name": "x", "metadata": "flat"}, "metadata"),
        ({"name": "x", "default_price_data": {"currency": "usd", "sum": 1}}, "default_price_data[sum]"),
    ],
)
def test_a_parameter_that_the_sdks_types_do_not_know_is_refused(client: stripe.StripeClient, asked: Any, param: str) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        client.v1.products.create(asked)
    assert (refused.value.http_status, refused.value.param) == (400, param)


def test_a_word_outside_an_enumeration_is_refused(shop: Shop) -> None:
    with pytest.raises(stripe.InvalidRequestError, match="allow_incomplete"):
        shop.subscribe(shop.customer(), payment_behavior="hope")
    with pytest.raises(stripe.InvalidRequestError, match="must be one of"):
        shop.client.v1.prices.create({"product": "p", "currency": "usd", "recurring": {"interval": "fortnight"}})


def test_what_would_be_ignored_is_refused_loudly(shop: Shop) -> None:
    with pytest.raises(stripe.APIError, match=r"does not know .*application_fee_percent"):
        shop.subscribe(shop.customer(), application_fee_percent=10)


def test_strangers_other_versions_and_live_keys_are_refused(stand_in: StandInStripe) -> None:
    http = stripe.RequestsClient(timeout=20)

    def client(key: str, version: str | None = None) -> stripe.StripeClient:
        return stripe.StripeClient(key, base_addresses={"api": stand_in.url}, stripe_version=version, http_client=http)

    with pytest.raises(stripe.AuthenticationError):
        client("sk_live_real").v1.accounts.retrieve_current()
    with pytest.raises(stripe.InvalidRequestError, match="alone"):
        client(KEY, "2025-03-31.basil").v1.accounts.retrieve_current()
    with pytest.raises(stripe.InvalidRequestError) as refused:
        client(KEY).v1.disputes.list()
    assert refused.value.http_status == 404
    http.close()  # type: ignore[no-untyped-call]  # the SDK left its types out here


def test_lists_are_newest_first_and_paged(client: stripe.StripeClient) -> None:
    made = [client.v1.customers.create({"email": "many@b.test"}).id for _ in range(7)]
    page = client.v1.customers.list({"email": "many@b.test", "limit": 3})
    assert [one.id for one in page.data] == made[:3:-1]
    assert page.has_more
    assert [one.id for one in page.auto_paging_iter()] == made[::-1]
    before = client.v1.customers.list({"email": "many@b.test", "limit": 2, "ending_before": made[0]})
    assert [one.id for one in before.data] == [made[2], made[1]]


def test_expansion_puts_the_object_where_its_id_was(shop: Shop) -> None:
    paths = ["customer", "latest_invoice.payments.data.payment.payment_intent.latest_charge"]
    bought: Any = shop.subscribe(shop.customer(), expand=paths)
    assert bought.customer.email == "a@b.test"
    assert bought.latest_invoice.payments.data[0].payment.payment_intent.latest_charge.amount == 80_00
    with pytest.raises(stripe.InvalidRequestError, match="cannot be expanded"):
        shop.subscribe(shop.customer(), expand=["status"])


def test_a_lookup_key_is_one_prices_and_can_be_moved(client: stripe.StripeClient) -> None:
    product = client.v1.products.create({"name": "Keyed"}).id
    asked: Any = {"product": product, "currency": "usd", "unit_amount": 1, "lookup_key": "k@1"}
    first = client.v1.prices.create(asked)
    with pytest.raises(stripe.InvalidRequestError, match="already uses that lookup key"):
        client.v1.prices.create(asked)
    second = client.v1.prices.create(asked | {"transfer_lookup_key": True})
    assert [one.id for one in client.v1.prices.list({"lookup_keys": ["k@1"]}).data] == [second.id]
    assert client.v1.prices.retrieve(first.id).lookup_key is None


def test_metadata_merges_and_an_empty_value_takes_away(client: stripe.StripeClient) -> None:
    made = client.v1.customers.create({"metadata": {"a": "1", "b": "2"}})
    changed = client.v1.customers.update(made.id, {"metadata": {"a": "", "c": "3"}})
    assert changed.metadata is not None
    assert changed.metadata.to_dict() == {"b": "2", "c": "3"}
    client.v1.customers.delete(made.id)
    assert client.v1.customers.retrieve(made.id).deleted
    with pytest.raises(stripe.InvalidRequestError, match="No such customer"):
        client.v1.customers.update(made.id, {"name": "gone"})
