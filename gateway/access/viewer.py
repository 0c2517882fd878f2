"""Who looks at a page: somebody signed in, with what they may do on the account they look at and on the whole installation."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

# What a person is to an account; and, for `operator` and `platform`, to the whole installation.
# `user` is anybody signed in.
Role = Literal["user", "owner", "admin", "developer", "billing", "viewer", "operator", "platform"]
MEMBERS: frozenset[Role] = frozenset({"owner", "admin", "developer", "billing", "viewer"})


@dataclass(frozen=True, slots=True)
class Viewer:
    """`role` is that on `account_id`; both are None for who is no member of any account."""

    session_id: UUID
    user_id: UUID
    email: str
    account_id: UUID | None
    account_name: str | None
    role: Role | None
    platform_role: Literal["operator", "platform"] | None

    @property
    def roles(self) -> frozenset[Role]:
        """The platform's admins are its operators too."""
        found: set[Role] = {"user", *(role for role in (self.role, self.platform_role) if role is not None)}
        if self.platform_role == "platform":
            found.add("operator")
        return frozenset(found)

    @property
    def actor(self) -> str:
        """As audit entries name them."""
        return self.email
