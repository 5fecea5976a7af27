"""The wire formats of three model APIs: Anthropic messages, OpenAI responses, Gemini; as server-sent events or whole.

Only what the clients need to believe it; called by the scripted model server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec

from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.testing.strict_schema import schema_faults, strict_faults

STRUCTURED = "StructuredOutput"
"""The tool by which claude takes an answer that has to fit a schema."""

Events = Iterator[tuple[str, dict[str, Any]]]

_numbers = count(1)


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the model says: a text, or the use of a tool."""

    text: str = ""
    tool: str = ""
    values: dict[str, Any] = {}
    custom: bool = False
    """A tool that takes plain text."""
    searches: bool = False
    """The tool by which codex lets the model look for others."""
    namespace: str = ""
    """The server that the tool is of, where that is told apart from its name."""


def offered(request: dict[str, Any]) -> dict[str, str]:
    """Return the tools a client offers, with their types."""
    found = {}
    for tool in request.get("tools") or ():
        found[str(tool.get("name") or tool.get("type"))] = str(tool.get("type"))
        for inner in (*(tool.get("tools") or ()), *(tool.get("functionDeclarations") or ())):
            found[str(inner.get("name"))] = str(inner.get("type"))
    return found


def asked_schema(request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema that a structured answer to this call has to fit."""
    schemas = [tool.get("input_schema") for tool in request.get("tools") or () if tool.get("name") == STRUCTURED]
    schemas.append(_format(request).get("schema"))
    return next((schema for schema in schemas if isinstance(schema, dict)), None)


def refused_schema(request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error that the service answers a schema with that it does not take."""
    asked = _format(request)
    if asked.get("strict") and (faults := strict_faults(asked.get("schema"))):
        message = f"Invalid schema for response_format '{asked.get('name')}': {faults[0]}"
        refusal = {"message": message, "type": "invalid_request_error"}
        return {"error": {**refusal, "param": "text.format.schema", "code": "invalid_json_schema"}}
    for number, tool in enumerate(request.get("tools") or ()):
        if "input_schema" in tool and (faults := schema_faults(tool["input_schema"])):
            message = f"tools.{number}.custom.{faults[0]}"
            return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return None


def _format(request: dict[str, Any]) -> dict[str, Any]:
    text = request.get("text")
    asked = text.get("format") if isinstance(text, dict) else None
    return asked if isinstance(asked, dict) else {}


def message_whole(request: dict[str, Any], block: Block, usage: Usage) -> dict[str, Any]:
    """Return an Anthropic message in one piece."""
    return {**_message(request), "content": [_content(block)], "stop_reason": _stop(block), "usage": _message_usage(usage)}


def message_events(request: dict[str, Any], block: Block, usage: Usage) -> Events:
    """Return an Anthropic message as a stream."""
    charged = _message_usage(usage)
    start = {**_message(request), "content": [], "stop_reason": None, "usage": {**charged, "output_tokens": 1}}
    yield _event("message_start", message=start)
    content = _content(block)
    if block.tool:
        yield _event("content_block_start", index=0, content_block={**content, "input": {}})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block.values)}
    else:
        yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        delta = {"type": "text_delta", "text": block.text}
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    stop = {"stop_reason": _stop(block), "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": charged["output_tokens"]})
    yield _event("message_stop")


def response_events(request: dict[str, Any], block: Block, usage: Usage) -> Events:
    """Return an OpenAI response as a stream; its input counts what came from the cache, too."""
    item = _item(block)
    begun: dict[str, Any] = {
        "id": _id("resp"),
        "object": "response",
        "created_at": 1,
        "model": request.get("model"),
        "output": [],
    }
    yield _event("response.created", response={**begun, "status": "in_progress"})
    if block.tool:
        yield _event("response.output_item.added", output_index=0, item={**item, "status": "in_progress"})
    else:
        yield _event("response.output_item.added", output_index=0, item={**item, "status": "in_progress", "content": []})
        yield _event("response.output_text.delta", item_id=item["id"], output_index=0, content_index=0, delta=block.text)
    yield _event("response.output_item.done", output_index=0, item=item)
    sent, cached = (usage.input_tokens or 0) + (usage.cache_read_tokens or 0), usage.cache_read_tokens or 0
    charged = {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + (usage.output_tokens or 0),
    }
    yield _event("response.completed", response={**begun, "status": "completed", "output": [item], "usage": charged})


def gemini_whole(request: dict[str, Any], block: Block, usage: Usage) -> dict[str, Any]:
    """Return a Gemini answer; its stream is the same in one piece. The prompt counts what came from the cache, too."""
    part = {"functionCall": {"name": block.tool, "args": block.values}} if block.tool else {"text": block.text}
    sent, said, cached = (usage.input_tokens or 0), usage.output_tokens or 0, usage.cache_read_tokens or 0
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": sent + cached,
            "candidatesTokenCount": said,
            "cachedContentTokenCount": cached,
            "totalTokenCount": sent + cached + said,
        },
        "modelVersion": "scripted",
    }


def _event(kind: str, **values: Any) -> tuple[str, dict[str, Any]]:
    return kind, {"type": kind, **values}


def _id(prefix: str) -> str:
    return f"{prefix}_{next(_numbers):06d}"


def _message(request: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": request.get("model"),
        "stop_sequence": None,
    }


def _content(block: Block) -> dict[str, Any]:
    if block.tool:
        return {"type": "tool_use", "id": _id("toolu"), "name": block.tool, "input": block.values}
    return {"type": "text", "text": block.text}


def _stop(block: Block) -> str:
    return "tool_use" if block.tool else "end_turn"


def _message_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }


def _item(block: Block) -> dict[str, Any]:
    called = {"id": _id("item"), "call_id": _id("call"), "name": block.tool, "status": "completed"}
    if block.custom:
        return {"type": "custom_tool_call", **called, "input": block.text}
    if block.searches:
        return {"type": "tool_search_call", **called, "execution": "client", "arguments": block.values}
    if block.tool:
        more = {"namespace": block.namespace} if block.namespace else {}
        return {"type": "function_call", **called, **more, "arguments": json.dumps(block.values)}
    content = [{"type": "output_text", "text": block.text, "annotations": []}]
    return {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": content}
