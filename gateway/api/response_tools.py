"""The tools of `/v1/responses`: those that a client carries out pass, namespaces are unwrapped where an engine knows none."""

from collections.abc import Mapping
from typing import Any

from backends.engines.kind import EngineKind
from gateway.errors import Refusal

# Tools that the client carries out. All others are hosted by their vendor: no engine here has them, and clients like Codex send
# them with every request, so they are left out. (Engines show a model none of them either; some refuse the request.)
_CLIENT_SIDE = frozenset({"function", "custom", "namespace"})
_MODES = frozenset({"none", "auto", "required"})
# Kinds that know more than functions: namespaces, and tools that take free text. vLLM since 0.32.
_KNOW_NAMESPACES = frozenset({"vllm"})
_KNOW_CUSTOM = frozenset({"vllm"})
_BETWEEN = "__"

Names = Mapping[str, tuple[str, str]]


def check(body: dict[str, Any]) -> None:
    """Raises: Refusal (400) for what is no tool, and for a choice that none of the tools which are left can meet."""
    tools = body.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(_is_tool(tool) for tool in tools)):
        raise Refusal(400, "tools must be a list of objects with a type.", param="tools", code="invalid_value")
    choice = body.get("tool_choice")
    wanted = choice.get("type") if isinstance(choice, dict) else None
    if wanted is not None and wanted not in ("function", "custom", "allowed_tools"):
        raise Refusal(400, f"tool_choice asks for {str(wanted)[:80]!r}, {_HOSTED}", param="tool_choice", code="tool_not_served")
    if choice == "required" and tools and not _kept(tools):
        raise Refusal(
            400, f"tool_choice is required, but tools holds only such {_HOSTED}", param="tool_choice", code="tool_not_served"
        )


_HOSTED = "as a vendor hosts; served are tools of type function, custom and namespace."


def for_engine(body: dict[str, Any], engine: EngineKind) -> None:
    """In the engine's copy of a body: the tools that are left, each in a shape that the kind knows."""
    tools = body.get("tools")
    if not tools:
        return
    kept = _kept(tools)
    if engine.name not in _KNOW_NAMESPACES:
        kept = [flat for tool in kept for flat in (_unwrapped(tool) if tool["type"] == "namespace" else [tool])]
    if engine.name in _KNOW_CUSTOM:
        kept = [_as_free_text(tool) if tool["type"] == "custom" else tool for tool in kept]
    else:
        kept = [tool for tool in kept if tool["type"] != "custom"]
    if kept:
        body["tools"] = kept
    else:
        del body["tools"]
        body.pop("tool_choice", None)


def names_to_mend(body: Mapping[str, Any], engine: EngineKind) -> Names:
    """By which names a model calls functions of namespaces that were unwrapped for it, and their own names."""
    if engine.name in _KNOW_NAMESPACES:
        return {}
    return {
        _flat(tool, function): (tool["name"], function["name"])
        for tool in body.get("tools") or ()
        if tool["type"] == "namespace"
        for function in _functions(tool)
    }


def flat_name(namespace: object, name: object) -> str:
    return f"{namespace}{_BETWEEN}{name}"


def knows_namespaces(engine: EngineKind) -> bool:
    return engine.name in _KNOW_NAMESPACES


def knows_custom(engine: EngineKind) -> bool:
    return engine.name in _KNOW_CUSTOM


def mend_name(item: dict[str, Any], names: Names) -> bool:
    """A call gets its function's own name and namespace back; whether it was one of those."""
    found = names.get(item.get("name", "")) if item.get("type") == "function_call" else None
    if found is None:
        return False
    item["namespace"], item["name"] = found
    return True


def _is_tool(tool: object) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("type"), str)


def _kept(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [tool for tool in tools if tool["type"] in _CLIENT_SIDE]


def _unwrapped(namespace: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**function, "name": _flat(namespace, function)} for function in _functions(namespace)]


def _functions(namespace: dict[str, Any]) -> list[dict[str, Any]]:
    held = namespace.get("tools")
    if not isinstance(namespace.get("name"), str) or not isinstance(held, list):
        return []
    return [
        tool for tool in held if isinstance(tool, dict) and tool.get("type") == "function" and isinstance(tool.get("name"), str)
    ]


def _flat(namespace: dict[str, Any], function: dict[str, Any]) -> str:
    return flat_name(namespace["name"], function["name"])


def _as_free_text(tool: dict[str, Any]) -> dict[str, Any]:
    """vLLM refuses a grammar; the model is told of it in words."""
    form = tool.get("format")
    if not isinstance(form, dict) or form.get("type") != "grammar":
        return tool
    description = f"{tool.get('description') or ''}\nIts input follows this grammar:\n{form.get('definition') or ''}"
    return {**tool, "description": description.strip(), "format": {"type": "text"}}
