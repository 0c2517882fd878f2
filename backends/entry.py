"""A replica as it is written: in the fleet file, or for `faregate backends add`."""

import os
import re
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from backends.engines.kinds import ENGINE_KINDS
from backends.prices import TokenPrice
from backends.replica import Overflow, Replica

# dns+a://name:port has the addresses of a name, dns+srv://name those of its services, with their ports.
DISCOVER = re.compile(r"dns\+(?:a://[A-Za-z0-9._-]+:[0-9]{1,5}|srv://[A-Za-z0-9._-]+)")


class KeyMissing(Exception):
    """The file or variable that an engine's key should be in can't be read, or holds none."""


_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$")]


class Entry(BaseModel):
    """One `[[replica]]`. With `discover` in place of `url` it stands for as many as a name has addresses."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    model: _Name
    engine: str
    url: str | None = None
    discover: str | None = None
    slots: Annotated[int, Field(ge=1, le=4096)]
    line: Annotated[int, Field(ge=0)] = 0
    context: Annotated[int, Field(ge=1)] | None = None
    engine_model: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    api_key_file: str | None = None
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    ca_file: str | None = None
    priority: bool = False
    # A part of a key's name in Valkey, where braces mean something.
    dedicated_to: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^{}\x00-\x1f\x7f]+$")] | None = None
    overflow: Overflow | None = None
    precision: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,31}$")] | None = None
    cost_cents_per_hour: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    # Of an upstream API alone: cents for a million tokens, the most that a month may cost, and whether it is used at all.
    prompt_cents: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    completion_cents: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    cap_cents_per_month: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    enabled: bool | None = None

    @field_validator("engine")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in ENGINE_KINDS:
            raise ValueError(f"{name!r} is none of {', '.join(ENGINE_KINDS)}")
        return name

    @field_validator("priority")
    @classmethod
    def _is_heeded(cls, is_on: bool, info: ValidationInfo) -> bool:
        kind = ENGINE_KINDS.get(info.data.get("engine", ""))
        if is_on and kind is not None and kind.priority is None:
            raise ValueError(f"{kind.name} knows no priorities; leave it out")
        return is_on

    @field_validator("line")
    @classmethod
    def _is_short(cls, line: int, info: ValidationInfo) -> int:
        if line >= info.data.get("slots", line + 1):
            raise ValueError("it counts in slots, and some must be left that run")
        return line

    @field_validator("overflow")
    @classmethod
    def _is_of_a_dedicated_one(cls, overflow: Overflow | None, info: ValidationInfo) -> Overflow | None:
        if overflow is not None and info.data.get("dedicated_to") is None:
            raise ValueError("only a replica with dedicated_to has one")
        return overflow

    @field_validator("url")
    @classmethod
    def _is_root(cls, url: str | None) -> str | None:
        if url is not None:
            Replica.at(url, name="", model="", engine=next(iter(ENGINE_KINDS.values())), slots=1)
        return url

    @field_validator("discover")
    @classmethod
    def _is_a_name(cls, discover: str | None) -> str | None:
        if discover is not None and (not DISCOVER.fullmatch(discover) or (urlsplit(discover).port or 1) < 1):
            raise ValueError("it is dns+a://name:port or dns+srv://name")
        return discover

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if (self.url is None) == (self.discover is None):
            raise ValueError("a replica has either a url or discover")
        if self.api_key_file is not None and self.api_key_env is not None:
            raise ValueError("its key is in api_key_file or in api_key_env, not in both")
        return self

    @model_validator(mode="after")
    def _is_paid_for(self) -> Self:
        terms = (self.prompt_cents, self.completion_cents, self.cap_cents_per_month)
        if not ENGINE_KINDS[self.engine].is_paid_by_token:
            if any(term is not None for term in (*terms, self.enabled)):
                raise ValueError("prompt_cents, completion_cents, cap_cents_per_month and enabled are of engine upstream alone")
        elif any(term is None for term in terms) or (self.api_key_file is None and self.api_key_env is None):
            raise ValueError("an upstream has prompt_cents, completion_cents, cap_cents_per_month and a key of its own")
        elif self.discover is not None:
            raise ValueError("an upstream has a url")
        return self

    @property
    def is_used(self) -> bool:
        """An upstream costs money by the token: it is off until `enabled = true` stands there."""
        return self.enabled is True or not ENGINE_KINDS[self.engine].is_paid_by_token

    @property
    def price(self) -> TokenPrice | None:
        if self.prompt_cents is None or self.completion_cents is None or self.cap_cents_per_month is None:
            return None
        return TokenPrice(self.prompt_cents, self.completion_cents, self.cap_cents_per_month)

    def replica(self, folder: Path, *, url: str | None = None, name: str | None = None) -> Replica:
        """Files are found from `folder`; `url` and `name` are those of one of many. Raises: KeyMissing."""
        where = url or self.url
        assert where is not None, "what is discovered has an address by then"
        return Replica.at(
            where, name=name or self.id, model=self.model, engine=ENGINE_KINDS[self.engine], slots=self.slots, line=self.line,
            context=self.context, engine_model=self.engine_model, api_key=self._api_key(folder), has_priority=self.priority,
            dedicated_to=self.dedicated_to or "", overflow=self.overflow or "queue", precision=self.precision,
            cost_cents_per_hour=self.cost_cents_per_hour, price=self.price,
            ca_file=str(folder / self.ca_file) if self.ca_file else None,
        )  # fmt: skip

    def _api_key(self, folder: Path) -> str | None:
        if self.api_key_env is not None:
            where, found = f"api_key_env: {self.api_key_env}", os.environ.get(self.api_key_env, "")
        elif self.api_key_file is not None:
            where = f"api_key_file: {self.api_key_file}"
            try:
                found = (folder / self.api_key_file).read_text(encoding="ascii")
            except (OSError, UnicodeDecodeError) as error:
                raise KeyMissing(f"{where} can't be read") from error
        else:
            return None
        key = found.strip()
        if not key or not key.isprintable() or " " in key:
            raise KeyMissing(f"{where} holds no key")
        return key
