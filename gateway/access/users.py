"""People who sign in: made with a password of which only the Argon2 hash is kept, and members of accounts."""

from uuid import UUID

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError
from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.dialects import postgresql
from uuid_utils.compat import uuid7

from billing.changes import audit
from billing.constraints import named_constraints
from billing.tables import users
from gateway.access.tables import members

PASSWORD_LENGTH_MIN = 12
# argon2 takes megabytes for each; what is longer is no password.
PASSWORD_LENGTH_MAX = 1024


class EmailTaken(Exception):
    """Somebody signs in with this email address already; case does not matter."""


class UserWrong(Exception):
    """Email, role or password can't be those of a user."""


class UserUnknown(Exception):
    """Nobody signs in with this email address."""


class PasswordWrong(Exception):
    """There is no user with this email address and this password; which of the two is wrong is not said."""


def create_user(connection: Connection, *, email: str, password: str, role: str, actor: str) -> UUID:
    """`role` is what it may do on the whole installation: admin, operator, or developer, which is nothing.

    Raises: EmailTaken, UserWrong.
    """
    if not PASSWORD_LENGTH_MIN <= len(password) <= PASSWORD_LENGTH_MAX:
        raise UserWrong(f"The password has to have {PASSWORD_LENGTH_MIN} to {PASSWORD_LENGTH_MAX:,} characters.")
    user_id = uuid7()
    values = {"id": user_id, "email": email, "password_hash": PasswordHasher().hash(password), "role": role}
    errors = {
        "users_email_key": EmailTaken(f"There is a user with the email address {email} already."),
        "users_email_spelling": UserWrong(f"{email!r} is no email address."),
        "users_role_known": UserWrong("The role is one of admin, operator, developer."),
    }
    with named_constraints(errors):
        connection.execute(insert(users).values(values))
    audit(connection, "user.create", actor=actor, subject=str(user_id), details={"email": email, "role": role})
    return user_id


def has_user(connection: Connection, email: str) -> bool:
    query = select(users.c.id).where(func.lower(users.c.email) == email.lower())
    return connection.execute(query).first() is not None


def find_user(connection: Connection, email: str) -> UUID:
    """Raises: UserUnknown."""
    found: UUID | None = connection.scalar(select(users.c.id).where(func.lower(users.c.email) == email.lower()))
    if found is None:
        raise UserUnknown(f"There is no user with the email address {email}.")
    return found


def make_member(connection: Connection, account_id: UUID, user_id: UUID, role: str, *, actor: str) -> None:
    """Or another role for who is one. `role` is owner, admin, developer, billing or viewer. Raises: UserWrong."""
    made = postgresql.insert(members).values(account_id=account_id, user_id=user_id, role=role)
    errors = {"members_role_known": UserWrong("The role is one of owner, admin, developer, billing, viewer.")}
    with named_constraints(errors):
        connection.execute(made.on_conflict_do_update(constraint="members_pkey", set_={"role": role}))
    audit(connection, "member.set", actor=actor, account_id=account_id, subject=str(user_id), details={"role": role})


def prove(connection: Connection, email: str, password: str) -> UUID:
    """Who this is. As much work is done for an address that nobody has. Raises: PasswordWrong."""
    query = select(users.c.id, users.c.password_hash).where(func.lower(users.c.email) == email.lower())
    found = connection.execute(query).first()
    hasher = PasswordHasher()
    wrong = PasswordWrong("There is no such email address and password. Check both; capital letters count in the password.")
    if found is None or len(password) > PASSWORD_LENGTH_MAX:
        hasher.hash("nobody's password")
        raise wrong
    try:
        hasher.verify(found.password_hash, password)
    except VerificationError:
        raise wrong from None
    if hasher.check_needs_rehash(found.password_hash):
        connection.execute(update(users).where(users.c.id == found.id).values(password_hash=hasher.hash(password)))
    user_id: UUID = found.id
    return user_id
