"""Parameters checked against the SDK's own types: what they do not know is refused, what they require must be there."""

import types
import typing
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from stripe._request_options import RequestOptions
from stripe._stripe_context import StripeContext
from stripe._stripe_object import UntypedStripeObject
from typing_extensions import is_typeddict

from tests.support.stripe.faults import Fault

_OPTIONS = frozenset(RequestOptions.__annotations__)


def check(given: dict[str, Any], expected: Any) -> dict[str, Any]:
    """The parameters with numbers and booleans read. Raises: Fault, naming the parameter."""
    return _structure(given, expected, "")


@cache
def _fields(expected: Any) -> dict[str, Any]:
    return {name: hint for name, hint in _hints(expected).items() if name not in _OPTIONS}


def _hints(expected: Any) -> dict[str, Any]:
    """The SDK imports two names of its request options for type checkers alone."""
    return typing.get_type_hints(expected, localns={"StripeContext": StripeContext, "Mapping": Mapping})


def _structure(given: Any, expected: Any, path: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Fault("Invalid object", param=path)
    fields = _fields(expected)
    for name in given:
        if name not in fields:
            where = _inside(path, name)
            raise Fault(f"Received unknown parameter: {where}", code="parameter_unknown", param=where)
    for name in expected.__required_keys__ & fields.keys():
        if name not in given:
            where = _inside(path, name)
            raise Fault(f"Missing required param: {where}.", code="parameter_missing", param=where)
    return {name: _value(value, fields[name], _inside(path, name)) for name, value in given.items()}


def _value(given: Any, hint: Any, path: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _one_of(given, get_args(hint), path)
    if origin is Literal:
        if given not in get_args(hint):
            raise Fault(f"Invalid {path}: must be one of {', '.join(map(str, get_args(hint)))}", param=path)
        return given
    if origin is list:
        if not isinstance(given, list):
            raise Fault("Invalid array", param=path)
        return [_value(one, get_args(hint)[0], f"{path}[{number}]") for number, one in enumerate(given)]
    if origin is dict:
        if not isinstance(given, dict):
            raise Fault("Invalid hash", param=path)
        return {name: _value(one, get_args(hint)[1], _inside(path, name)) for name, one in given.items()}
    if is_typeddict(hint):
        return _structure(given, hint, path)
    return _scalar(given, hint, path)


def _one_of(given: Any, hints: tuple[Any, ...], path: str) -> Any:
    """An open enumeration (`Literal[...] | str`) is closed here: the API refuses what is not in it."""
    words = [word for hint in hints if get_origin(hint) is Literal for word in get_args(hint)]
    if given in words:
        return given
    options = [hint for hint in hints if get_origin(hint) is not Literal and get_origin(hint) is not UntypedStripeObject]
    if [word for word in words if word]:
        options = [hint for hint in options if hint is not str]
    refusal = Fault(f"Invalid {path}: must be one of {', '.join(words)}", param=path)
    for hint in sorted(options, key=lambda hint: hint is str):
        try:
            return _value(given, hint, path)
        except Fault as fault:
            refusal = fault
    raise refusal


def _scalar(given: Any, hint: Any, path: str) -> Any:
    if not isinstance(given, str):
        raise Fault(f"Invalid {path}: must not be an object or array", param=path)
    try:
        if hint is bool:
            return {"true": True, "false": False}[given]
        if hint in (int, float, Decimal):
            return hint(given)
    except (KeyError, ValueError, ArithmeticError):
        raise Fault(f"Invalid {hint.__name__}: {given}", param=path) from None
    if hint is not str:
        raise Fault(f"Invalid {path}", param=path)
    return given


def _inside(path: str, name: str) -> str:
    return f"{path}[{name}]" if path else name
