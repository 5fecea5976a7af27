"""Our errors as errors of the protocol: the sentence that the command would print."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from agent_orchestrator.errors import OrcError

Given = ParamSpec("Given")
Found = TypeVar("Found")


def tell_errors(error_type: type[Exception]) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """Return a decorator that raises our errors as this type, in their own words."""

    def decorate(function: Callable[Given, Found]) -> Callable[Given, Found]:
        @wraps(function)
        def call(*args: Given.args, **named: Given.kwargs) -> Found:
            try:
                return function(*args, **named)
            except OrcError as error:
                raise error_type(str(error)) from None

        return call

    return decorate
