"""A model that plays several agents tells by the prompt which part a call belongs to, and plays each part once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_orchestrator.testing.model_cast import Cast, Part, last_prompt
from agent_orchestrator.testing.model_server import Behaviour, Refuse, Reply, Say, Shell, Write

Conversation = list[tuple[str, str]]


def messages(turns: Conversation) -> dict[str, Any]:
    """As claude and opencode send a conversation."""
    kinds: dict[str, Callable[[str], tuple[str, list[dict[str, str]]]]] = {
        "user": lambda text: (
            "user",
            [{"type": "text", "text": "<reminder>of theirs</reminder>"}, {"type": "text", "text": text}],
        ),
        "model": lambda text: ("assistant", [{"type": "tool_use", "name": text}]),
        "result": lambda text: ("user", [{"type": "tool_result", "content": text}, {"type": "text", "text": "a hint"}]),
    }
    told = [kinds[who](text) for who, text in turns]
    return {"messages": [{"role": role, "content": content} for role, content in told]}


def responses(turns: Conversation) -> dict[str, Any]:
    """As codex does."""
    items: list[dict[str, Any]] = [{"type": "message", "role": "developer", "content": [{"text": "rules"}]}]
    for who, text in turns:
        if who == "user":
            items.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        else:
            items.append({"type": {"model": "function_call", "result": "function_call_output"}[who], "call_id": text})
    return {"input": items}


def contents(turns: Conversation) -> dict[str, Any]:
    """As gemini does."""
    parts: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
        "user": lambda text: ("user", {"text": text}),
        "model": lambda text: ("model", {"functionCall": {"name": text}}),
        "result": lambda text: ("user", {"functionResponse": {"name": text}}),
    }
    told = [parts[who](text) for who, text in turns]
    return {"contents": [{"role": role, "parts": [part]} for role, part in told]}


@pytest.mark.parametrize("spelled", [messages, responses, contents])
def test_how_far_a_conversation_has_come_is_counted_from_its_last_prompt(spelled: Any) -> None:
    turns = [("user", "do a"), ("model", "write"), ("result", "written")]
    assert last_prompt(spelled(turns[:1])) == ("do a", 0)
    assert last_prompt(spelled(turns)) == ("do a", 1)
    assert last_prompt(spelled([*turns, ("model", "report"), ("user", "do b")])) == ("do b", 0)
    assert last_prompt(spelled([*turns, ("user", "do b"), ("model", "write")])) == ("do b", 1)


def test_a_prompt_may_be_plain_text() -> None:
    assert last_prompt({"messages": [{"role": "user", "content": "do a"}]}) == ("do a", 0)


def test_parts_are_given_by_their_words_in_order_and_each_once() -> None:
    one, two = Part("one", "do a", script=[Say("1")]), Part("two", "do a", "twice", script=[Say("2")])
    other = Part("other", "do b", script=[Shell("true"), Say("3")])
    cast = Cast([one, two, other])
    assert said(cast, ("user", "do b")) == Shell("true")
    assert said(cast, ("user", "do a, twice")) == Say("1")
    assert said(cast, ("user", "do b"), ("model", "shell"), ("result", "")) == Say("3")
    assert said(cast, ("user", "do b"), ("model", "shell"), ("result", ""), ("model", "more")) == Say("3"), "the last for ever"
    assert cast.left() == ["two"]
    assert said(cast, ("user", "do a, twice")) == Say("2")
    assert (cast.played, cast.left(), cast.strangers) == (["other", "one", "two"], [], [])
    assert (cast["other"].prompt, cast["other"].calls, len(cast.requests)) == ("do b", 3, 5)


def test_a_conversation_that_nobody_is_for_is_refused_and_remembered() -> None:
    cast = Cast([Part("one", "do a", script=[Say("1")])])
    assert isinstance(said(cast, ("user", "do c")), Refuse)
    said(cast, ("user", "do a"))
    assert isinstance(said(cast, ("user", "do a")), Refuse), "an agent that is launched twice finds nobody left"
    assert cast.strangers == ["do c", "do a"]


def test_a_client_without_a_schema_writes_its_report_to_the_file_that_it_was_told_and_ends() -> None:
    cast = Cast([Part("one", "do a", script=[Shell("true"), Reply({"status": "DONE"})])])
    prompt = ("user", "do a\n\n## Report\n\nwrite one JSON object to this file:\n\n    /some/report.json\n\nlike this: …")
    assert said(cast, prompt) == Shell("true")
    assert said(cast, prompt, ("model", "shell"), ("result", "")) == Write("/some/report.json", '{"status": "DONE"}')
    assert said(cast, prompt, ("model", "shell"), ("result", ""), ("model", "write"), ("result", "")) == Say("It is done.")


def said(cast: Cast, *turns: tuple[str, str]) -> Behaviour:
    behaviour, _ = cast.next(messages(list(turns)))
    return behaviour
