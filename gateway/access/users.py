"""People who sign in: made with a password of which only the Argon2 hash is kept."""

from uuid import UUID

from argon2 import PasswordHasher
from sqlalchemy import Connection, func, insert, select
from uuid_utils.compat import uuid7

from billing.changes import audit
from billing.constraints import named_constraints
from billing.tables import users

PASSWORD_LENGTH_MIN = 12


class EmailTaken(Exception):
    """Somebody signs in with this email address already; case does not matter."""


class UserWrong(Exception):
    """Email, role or password can't be those of a user."""


def create_user(
    connection: Connection, *, email: str, password: str, role: str, actor: str, account_id: UUID | None = None
) -> UUID:
    """`role` is admin, operator or developer. Raises: EmailTaken, UserWrong."""
    if len(password) < PASSWORD_LENGTH_MIN:
        raise UserWrong(f"The password has to have at least {PASSWORD_LENGTH_MIN} characters.")
    user_id = uuid7()
    values = {
        "id": user_id,
        "account_id": account_id,
        "email": email,
        "password_hash": PasswordHasher().hash(password),
        "role": role,
    }
    errors = {
        "users_email_key": EmailTaken(f"There is a user with the email address {email} already."),
        "users_email_spelling": UserWrong(f"{email!r} is no email address."),
        "users_role_known": UserWrong("The role is one of admin, operator, developer."),
    }
    with named_constraints(errors):
        connection.execute(insert(users).values(values))
    audit(
        connection,
        "user.create",
        actor=actor,
        account_id=account_id,
        subject=str(user_id),
        details={"email": email, "role": role},
    )
    return user_id


def has_user(connection: Connection, email: str) -> bool:
    query = select(users.c.id).where(func.lower(users.c.email) == email.lower())
    return connection.execute(query).first() is not None
