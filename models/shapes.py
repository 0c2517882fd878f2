"""What decides how much GPU memory a model takes: layers, heads and widths, and the precisions that it comes in."""

import tomllib
from importlib.resources import files
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from models.catalogue import Catalogue, Model
from models.model import parameter_count

Precision = Literal["bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4"]
_FILES = ("shapes_dense.toml", "shapes_mixtures.toml")
_BF16_BYTES = 2


class ShapeUnknown(Exception):
    """Nobody has written down the layers and heads of this model."""


class Shape(BaseModel):
    """One model's, as its config.json has them. `kv_heads` and `head_dim` are those of the layers with full attention."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parameters: int | None = Field(default=None, gt=0)
    layers: int = Field(gt=0)
    hidden: int = Field(gt=0)
    heads: int = Field(gt=0)
    kv_heads: int = Field(default=1, ge=1, description="1 for a latent that every head reads")
    head_dim: int | None = Field(default=None, gt=0)
    attention_layers: int | None = Field(default=None, gt=0, description="those with full attention; all without it")
    kv_bytes_per_token: int = Field(default=0, ge=0, description="of the whole model, in BF16")
    kv_bytes_per_token_fp8: int = Field(default=0, ge=0)
    kv_bytes_per_sequence: int = Field(default=0, ge=0, description="of sliding windows and recurrent states")
    precisions: tuple[Precision, ...] = Field(min_length=1)
    note: str = ""
    source: str

    @model_validator(mode="after")
    def _fill(self) -> Self:
        """Grouped heads: a key and a value for each head of each layer. FP8 takes half where nothing else is known."""
        in_bf16 = self.kv_bytes_per_token
        if not in_bf16:
            if self.head_dim is None:
                raise ValueError("either head_dim or kv_bytes_per_token says what a token takes")
            in_bf16 = 2 * (self.attention_layers or self.layers) * self.kv_heads * self.head_dim * _BF16_BYTES
        object.__setattr__(self, "kv_bytes_per_token", in_bf16)
        object.__setattr__(self, "kv_bytes_per_token_fp8", self.kv_bytes_per_token_fp8 or in_bf16 // 2)
        return self


class Shapes:
    """By model."""

    def __init__(self, shapes: dict[str, Shape]) -> None:
        self._shapes = shapes

    @classmethod
    def load(cls, catalogue: Catalogue) -> Self:
        """With the catalogue's parameters where no more exact count is known. Raises: ModelUnknown, ValidationError."""
        found = {}
        for file in _FILES:
            text = files("models").joinpath(file).read_text(encoding="utf-8")
            for name, entry in tomllib.loads(text).items():
                model = catalogue.resolve(name)
                found[model.id] = Shape.model_validate({**_parameters(model), **entry})
        return cls(found)

    def of(self, model: Model) -> Shape:
        """Raises: ShapeUnknown."""
        shape = self._shapes.get(model.id)
        if shape is None or shape.parameters is None:
            raise ShapeUnknown(f"The layers of {model.id} are not known here, so its memory can't be worked out.")
        return shape

    def known(self) -> list[str]:
        return sorted(self._shapes)


def _parameters(model: Model) -> dict[str, int]:
    return {} if model.parameters is None else {"parameters": parameter_count(model.parameters)}
