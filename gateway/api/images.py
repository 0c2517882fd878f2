"""Images that a body names by address: found when it is read, and written into it as data before an engine gets it."""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.errors import Refusal
from gateway.fetch.fetcher import Fetcher, ImageNotFetched
from gateway.fetch.picture import Picture

# Encoded in pieces, so that a large image holds nobody else up; whole groups of three bytes need no padding in between.
_PIECE_BYTES = 3 * 256 * 1024


# More than any plan takes. Each that is noted takes microseconds, for which everybody waits, before the plan's limit is known.
ADDRESSED_MAX = 1024


class ImageUnavailable(Exception):
    """An image could not be had; `place` says which part of the body names it."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place} could not be fetched: {why}.")
        self.place = place


@dataclass(frozen=True, slots=True)
class Addressed:
    """An image by address: where it stands in the body, and how its data is put there, as media type and base64."""

    place: str
    url: str
    put: Callable[[str, str], None]


def is_address(url: object) -> bool:
    return isinstance(url, str) and url[:8].lower().startswith(("http://", "https://"))


def note(found: list[Addressed], image: Addressed) -> None:
    """Raises: Refusal (400), when it is one too many."""
    if len(found) == ADDRESSED_MAX:
        raise Refusal(
            400,
            f"One request takes at most {ADDRESSED_MAX} images by address; send less in one request.",
            param=image.place,
            code="over_plan_limit",
        )
    found.append(image)


def in_field(place: str, holder: dict[str, Any], field: str) -> Addressed:
    """OpenAI's way: a field holds an address or a data: URL."""

    def put(media_type: str, data: str) -> None:
        holder[field] = f"data:{media_type};base64,{data}"

    return Addressed(place, holder[field], put)


def in_source(place: str, part: dict[str, Any]) -> Addressed:
    """Anthropic's way: `source` is of type "url" or "base64"."""

    def put(media_type: str, data: str) -> None:
        part["source"] = {"type": "base64", "media_type": media_type, "data": data}

    return Addressed(place, part["source"]["url"], put)


def check(addressed: Sequence[Addressed], fetcher: Fetcher | None) -> None:
    """Raises: Refusal (400) where the operator has us fetch none."""
    if addressed and fetcher is None:
        place = addressed[0].place
        raise Refusal(400, f"{place} must be a data: URL; addresses are not fetched here.", param=place, code="invalid_value")


async def put_in(addressed: Sequence[Addressed], fetcher: Fetcher, account: str, bytes_left: int) -> None:
    """Fetches them, each address once, and writes them into the body, which grows by at most `bytes_left`.

    Raises: ImageUnavailable.
    """
    places: dict[str, list[str]] = {}
    for image in addressed:
        places.setdefault(image.url, []).append(image.place)
    room = _Room(bytes_left)
    try:
        async with asyncio.TaskGroup() as together:
            tasks = {url: together.create_task(_fetched(fetcher, url, account, named, room)) for url, named in places.items()}
    except* ImageUnavailable as group:
        raise _first(group) from None
    for image in addressed:
        picture = tasks[image.url].result()
        image.put(picture.media_type, await _encoded(picture.data))


class _Room:
    """What is left of the body's limit. Each image takes its part as it comes: those of one call, all waiting for the last of
    them, would be ten times of what a body may be."""

    def __init__(self, bytes_left: int) -> None:
        self._bytes_left = bytes_left

    def take(self, picture: Picture, places: Sequence[str]) -> None:
        """Raises: ImageUnavailable."""
        for place in places:
            self._bytes_left -= len(picture.data) * 4 // 3
            if self._bytes_left < 0:
                raise ImageUnavailable(place, "with it the request is larger than a request may be")


async def _fetched(fetcher: Fetcher, url: str, account: str, places: Sequence[str], room: _Room) -> Picture:
    try:
        picture = await fetcher.get(url, account)
    except ImageNotFetched as error:
        raise ImageUnavailable(places[0], str(error)) from None
    room.take(picture, places)
    return picture


def _first(group: BaseExceptionGroup[ImageUnavailable]) -> BaseException:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def _encoded(data: bytes) -> str:
    pieces = []
    for start in range(0, len(data), _PIECE_BYTES):
        pieces.append(b64encode(data[start : start + _PIECE_BYTES]).decode("ascii"))
        await asyncio.sleep(0)
    return "".join(pieces)
