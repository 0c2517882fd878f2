"""What a browser sends with a form: read within bounds, one value a name."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

FORM_BYTES_MAX = 64 * 1024
FIELDS_MAX = 100


class FormWrong(Exception):
    """It is too large, or no form."""


async def form_of(request: Request) -> Mapping[str, str]:
    """Raises: FormWrong."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > FORM_BYTES_MAX:
            raise FormWrong(f"A form has at most {FORM_BYTES_MAX // 1024} KiB.")
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise FormWrong("This is no form.") from None
    return {name: value.strip() for name, value in pairs}
