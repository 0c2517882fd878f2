"""The part of the proof that asks Stripe: each subscription is here as it is there. Where nothing is sold nothing is asked."""

import time
from collections.abc import Sequence
from datetime import datetime

from billing.proofs import Finding
from gateway.settings import Settings

# What changes while it is looked at is in step again by then.
AGAIN_SECONDS = 5.0


async def compare_with_stripe(settings: Settings, now: datetime, *, again_seconds: float = AGAIN_SECONDS) -> Sequence[Finding]:
    """What differs twice, so long apart. A Stripe that can't be asked is a finding; raises psycopg's errors."""
    if settings.stripe_key is None:
        return ()
    # Here, as its SDK costs every command that knows the ledger a third of a second.
    from billing.stripe import StripeRefused, StripeUnavailable
    from billing.stripe_differences import compare, named, of_the_record
    from gateway.stripe_events import apart, opened_shop

    def asked() -> Sequence[Finding]:
        with opened_shop(settings, lambda: now) as shop:
            try:
                stale = compare(shop).stale
                if stale:
                    time.sleep(again_seconds)
                    later = compare(shop).stale
                    stale = {one: later[one] for one in stale if one in later}
                found = [*stale.values()]
            except (StripeUnavailable, StripeRefused) as trouble:
                found = [Finding("unproved", f"subscriptions were not compared with Stripe: {trouble}")]
            return named(shop, [*found, *of_the_record(shop)])

    return await apart(asked)
