"""The stand-in Stripe: a stateful server for the endpoints that Faregate uses; `python -m tests.support.stripe --port 0`.

A file is one noun of Stripe's. What a thing keeps for itself begins with `_` and never leaves the server.
"""
