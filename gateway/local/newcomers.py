"""Who is there after the first `up`: an admin, and a demo account on the Free plan with a key."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Newcomers:
    """`admin_password` is there on the first run only; it is not kept anywhere."""

    demo_key: str
    admin_email: str
    admin_password: str | None
