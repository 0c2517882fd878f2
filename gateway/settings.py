"""Every setting of the program, read from the environment in this one place."""

import os
import re
import secrets
import socket
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AliasChoices, Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from gateway.fetch.policy import Policy

MIB = 1024 * 1024


class SettingsWrong(Exception):
    """A setting is missing or can't be used; the message says which, and what to do."""


def _own_name() -> str:
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(3)}"


class Settings(BaseSettings):
    """`FAREGATE_<NAME>`; a secret may come from a file named by `<NAME>_FILE` instead."""

    model_config = SettingsConfigDict(env_prefix="FAREGATE_", extra="ignore", frozen=True, hide_input_in_errors=True)

    database_url: SecretStr = Field(validation_alias=AliasChoices("DATABASE_URL", "FAREGATE_DATABASE_URL", "database_url"))
    redis_url: SecretStr = Field(validation_alias=AliasChoices("REDIS_URL", "FAREGATE_REDIS_URL", "redis_url"))
    key_pepper: SecretStr = Field(min_length=32, description="secret that API keys are hashed with; 32 characters or more")
    fleet_file: Path | None = Field(default=None, description="TOML file that lists the engine replicas")
    accepted_models: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="models, separated by commas, that are served though their licence forbids to sell answers or is unknown",
    )

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    ops_host: str = "127.0.0.1"
    ops_port: int = Field(default=8081, ge=0, le=65535, description="health and metrics, for operators only; 0 picks a free port")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="addresses or networks, separated by commas, whose X-Forwarded-For is believed"
    )
    gateway_id: str = Field(default_factory=_own_name, min_length=1, max_length=80, pattern=r"^[A-Za-z0-9._-]+$")
    shards: int = Field(default=64, ge=1, le=1024, description="fixed when Faregate is installed; never change it afterwards")
    clock_offset_ms: int = Field(default=0, description="moves this process's clock, for tests of midnight")

    body_limit_bytes: int = Field(default=32 * MIB, ge=1024, le=1024 * MIB)
    header_limit_bytes: int = Field(default=64 * 1024, ge=1024, le=MIB)
    header_seconds: float = Field(default=10.0, gt=0, description="a client must have sent its headers by then")
    body_seconds: float = Field(default=60.0, gt=0, description="a client must have sent its body by then")
    keep_alive_seconds: float = Field(default=75.0, gt=0)
    fetch_images: bool = Field(default=True, description="images by http(s) address are fetched; otherwise refused")
    fetch_allowed: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="hosts, addresses or networks, separated by commas, that images come from though not public",
    )
    fetch_bytes: int = Field(default=20 * MIB, ge=1024, le=1024 * MIB, description="a fetched image may be as large")
    fetch_seconds: float = Field(default=10.0, gt=0, description="a fetched image must be there by then")
    total_seconds: float = Field(default=600.0, gt=0, description="the longest that one call may take")
    # With the longest wait for a slot, below 300 s: Codex gives up a stream that sent no event for so long; comments are none.
    first_byte_seconds: float = Field(default=230.0, gt=0, description="the longest wait for an engine to begin")
    stream_idle_seconds: float = Field(default=120.0, gt=0, description="the longest silence of an engine inside an answer")
    commit_seconds: float = Field(default=5.0, gt=0, description="a waiting stream answers 200 from then on")
    queue_seconds: float = Field(default=60.0, ge=0, description="the longest wait for a slot on a replica")
    queue_depth: int = Field(default=256, ge=0, description="calls that may wait for one model")
    idempotency_seconds: float = Field(
        default=3600.0, ge=1, le=3600, description="answers to calls with Idempotency-Key are kept"
    )
    loop_errors: int = Field(default=20, ge=1, description="errors in a row after which the same request is refused for a while")
    drain_seconds: float = Field(default=30.0, ge=0)
    lease_ms: int = Field(default=5000, ge=1000, le=60000)
    valkey_timeout_ms: int = Field(default=100, ge=10, le=10000)
    retention_days: int = Field(default=400, ge=2, description="days of the request ledger that are kept")
    currency: str = Field(default="usd", pattern=r"^[a-z]{3}$", description="ISO 4217: what the plans' prices are in")
    stripe_key: SecretStr | None = Field(default=None, description="secret or restricted key of the Stripe account")
    stripe_webhook_secret: SecretStr | None = Field(
        default=None, description="what Stripe signs its events with; several, separated by commas, while one replaces another"
    )
    stripe_api_base: str | None = Field(default=None, pattern=r"^https?://", description="a server that stands in for Stripe")
    grace_days: int = Field(default=7, ge=0, le=90, description="a plan goes on so long after a bill of it was not paid")
    trial_days: int = Field(default=7, ge=1, le=365)
    trials_per_network: int = Field(default=3, ge=1, description="trials begun in a day from one /24, or /48 of IPv6")
    packs: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("1000:500", "10000:4000"), description="requests:cents, separated by commas: what is sold beyond the quota"
    )
    alerts_allowed: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="hosts, addresses or networks that alerts are sent to though they are not public"
    )
    public_url: str | None = Field(default=None, pattern=r"^https?://", description="where browsers find this installation")
    console: bool = Field(default=True, description="serve the web console")
    log_level: str = Field(default="info", pattern=r"^(debug|info|warning|error)$")

    @model_validator(mode="before")
    @classmethod
    def _split_lists(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name in ("trusted_proxies", "fetch_allowed", "accepted_models", "packs", "alerts_allowed"):
            given = values.get(name)
            if isinstance(given, str):
                values[name] = tuple(part.strip() for part in given.split(",") if part.strip())
        return values

    @field_validator("fetch_allowed", "alerts_allowed")
    @classmethod
    def _is_spelled_well(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        Policy.of(value)
        return value

    @field_validator("stripe_key")
    @classmethod
    def _is_a_secret_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not re.fullmatch(r"(sk|rk)_(test|live)_\w+", value.get_secret_value()):
            raise ValueError("a secret key of Stripe begins with sk_test_, sk_live_, rk_test_ or rk_live_")
        return value

    @field_validator("stripe_webhook_secret")
    @classmethod
    def _is_a_signing_secret(cls, value: SecretStr | None, given: ValidationInfo) -> SecretStr | None:
        """An empty one would verify what anybody can forge."""
        if value is None:
            return None
        if not all(re.fullmatch(r"whsec_[\w+/=-]{8,}", part.strip()) for part in value.get_secret_value().split(",")):
            raise ValueError("each signing secret begins with whsec_; leave it unset where no webhooks come")
        if given.data.get("stripe_key") is None:
            raise ValueError("events are of no use without FAREGATE_STRIPE_KEY")
        return value

    @field_validator("packs")
    @classmethod
    def _is_fares_and_cents(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(re.fullmatch(r"[1-9]\d{0,6}:[1-9]\d{0,7}", pack) for pack in value):
            raise ValueError("a pack is requests:cents, as in 1000:500")
        return value

    @field_validator("stripe_api_base")
    @classmethod
    def _is_given_no_live_key(cls, value: str | None, given: ValidationInfo) -> str | None:
        key = given.data.get("stripe_key")
        if value is not None and key is not None and "_live_" in key.get_secret_value():
            raise ValueError("only test keys are sent elsewhere; a live one goes to Stripe alone")
        return value

    @property
    def webhook_secrets(self) -> tuple[str, ...]:
        given = self.stripe_webhook_secret
        return () if given is None else tuple(part.strip() for part in given.get_secret_value().split(","))

    @property
    def pages_url(self) -> str:
        """What Stripe's pages send a browser back to; also a price list in words, until the console is there."""
        return f"{(self.public_url or f'http://{self.host}:{self.port}').rstrip('/')}/docs"

    @property
    def pack_prices(self) -> dict[int, int]:
        """Cents by fares."""
        return {int(fares): int(cents) for fares, cents in (pack.split(":") for pack in self.packs)}

    @classmethod
    def load(cls) -> Self:
        """Read the environment. Raises: SettingsWrong, naming each setting and what is wrong with it, never its value."""
        try:
            return cls(**_secrets_from_files())
        except ValidationError as error:
            raise SettingsWrong("\n".join(_explain(problem) for problem in error.errors())) from None


_FILES = {
    "database_url": ("DATABASE_URL_FILE", "FAREGATE_DATABASE_URL_FILE"),
    "redis_url": ("REDIS_URL_FILE", "FAREGATE_REDIS_URL_FILE"),
    "key_pepper": ("FAREGATE_KEY_PEPPER_FILE",),
    "stripe_key": ("FAREGATE_STRIPE_KEY_FILE",),
    "stripe_webhook_secret": ("FAREGATE_STRIPE_WEBHOOK_SECRET_FILE",),
}


def _secrets_from_files() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, variables in _FILES.items():
        for variable in variables:
            if path := os.environ.get(variable):
                try:
                    found[name] = Path(path).read_text(encoding="utf-8").strip()
                except OSError as error:
                    raise SettingsWrong(f"{variable} names {path}, which can't be read: {error.strerror}") from error
    return found


_SPELLED = {"database_url": "DATABASE_URL", "redis_url": "REDIS_URL"}


def _explain(problem: Any) -> str:
    name = str(problem["loc"][0]) if problem["loc"] else "settings"
    variable = _SPELLED.get(name.lower(), name if name.isupper() else f"FAREGATE_{name.upper()}")
    if problem["type"] == "missing":
        return f"{variable} is not set; set it, or use `faregate up`, which sets everything for a local run"
    return f"{variable}: {problem['msg']}"
