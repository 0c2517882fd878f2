"""The kinds of engine that a fleet file may name."""

from types import MappingProxyType

from backends.engines.llamacpp import LLAMACPP
from backends.engines.sglang import SGLANG
from backends.engines.tgi import TGI
from backends.engines.trtllm import TRTLLM
from backends.engines.upstream import UPSTREAM
from backends.engines.vllm import VLLM

ENGINE_KINDS = MappingProxyType({kind.name: kind for kind in (VLLM, SGLANG, LLAMACPP, TRTLLM, TGI, UPSTREAM)})
