"""A constraint of the database, recognised by its name, becomes the domain's own error."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import IntegrityError


@contextmanager
def named_constraints(errors: Mapping[str, Exception]) -> Iterator[None]:
    """Raises the error that stands for the constraint that was broken; any other violation goes on as it is."""
    try:
        yield
    except IntegrityError as violation:
        origin = violation.orig
        name = origin.diag.constraint_name if isinstance(origin, psycopg.Error) else None
        if name is not None and name in errors:
            raise errors[name] from violation
        raise
