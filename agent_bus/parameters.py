"""The parameters of verbs: plain types with words and limits, their schema, and the checks that every face shares.

A type is str, int, bool, list[str] or a Literal of words; `Annotated[…, Param(…)]` adds words and limits. Coercion is
strict where a model's slip would be taken for a wish ("true" is no boolean) and kind where clients differ (an array may
come as its JSON text, an object for a JSON text).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from agent_bus.errors import invalid, too_large

IGNORED = ("wait_for_previous",)
"""Arguments that clients add by themselves (Gemini CLI); so are names that begin with an underscore."""


@dataclass(frozen=True)
class Param:
    """What the signature cannot say.

    Args:
        text: description for people and models, limits in words.
        low, high: range of an integer.
        clamp: an integer above `high` is lowered to it instead of refused.
        max_chars: longest text, or longest item of an array.
        max_items: longest array.
        json: the text, or an item of the array, may be JSON: a client that sends the object itself means its text.
        required: must be given, though it stands behind parameters that need not be.
    """

    text: str
    low: int | None = None
    high: int | None = None
    clamp: bool = False
    max_chars: int = 0
    max_items: int = 0
    json: bool = False
    required: bool = False


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command, as the faces need it."""

    name: str
    kind: Literal["string", "integer", "boolean", "array"]
    param: Param
    words: tuple[str, ...] = ()
    default: Any = None
    required: bool = False

    def schema(self) -> dict[str, Any]:
        """Its JSON schema: type, description, enum, default, minimum, maximum, items; nothing else."""
        found: dict[str, Any] = {"type": self.kind, "description": self.param.text}
        if self.words:
            found["enum"] = [w for w in self.words if w]
        if self.kind == "array":
            found["items"] = {"type": "string"}
        if self.param.low is not None:
            found["minimum"] = self.param.low
        if self.param.high is not None and not self.param.clamp:
            found["maximum"] = self.param.high
        if not self.required and self.default and not (self.words and self.default not in self.words):
            found["default"] = self.default
        return found


def nearest(name: str, names: Mapping[str, Any]) -> str:
    """A hint with the nearest known name, or ""."""
    close = get_close_matches(name, list(names), n=1)
    return f"Did you mean {close[0]}?" if close else ""


def of_verb(verb: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a verb, but for its first, the bus.

    Raises:
        TypeError: one has a type that the faces do not know.
    """
    hints = get_type_hints(verb, include_extras=True)
    found = []
    for name, parameter in list(inspect.signature(verb).parameters.items())[1:]:
        kind, words, param = _read_type(name, hints[name])
        required = param.required or parameter.default is inspect.Parameter.empty
        default = None if required else parameter.default
        found.append(Parameter(name, kind, param, words, default, required))
    return found


def _read_type(name: str, hint: Any) -> tuple[Any, tuple[str, ...], Param]:
    param = Param(name)
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        param = next((e for e in extras if isinstance(e, Param)), param)
    if get_origin(hint) is Literal:
        return "string", get_args(hint), param
    kinds: dict[Any, str] = {str: "string", int: "integer", bool: "boolean"}
    if hint in kinds:
        return kinds[hint], (), param
    if get_origin(hint) is list and get_args(hint) == (str,):
        return "array", (), param
    raise TypeError(f"parameter {name}: {hint} is not one of str, int, bool, list[str], Literal of words")


def check_given(name: str, parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as a verb takes them; null is the same as not given.

    Args:
        name: the verb's.
        parameters: the verb's.
        given: its arguments as they came.

    Raises:
        BusError: `invalid` or `too_large`, naming the parameter, the rule and a good value.
    """
    by_name = {p.name: p for p in parameters}
    ready: dict[str, Any] = {}
    for key, value in given.items():
        if key in IGNORED or key.startswith("_") or value is None:
            continue
        parameter = by_name.get(key)
        if parameter is None:
            hint = nearest(key, by_name) or f"It takes {', '.join(by_name) or 'nothing'}."
            raise invalid(f"{name} has no parameter {key[:60]!a}; it", "is unknown", hint)
        ready[key] = check_value(parameter, value)
    for parameter in parameters:
        if parameter.required and parameter.name not in ready:
            raise invalid(parameter.name, f"is missing: {parameter.param.text.rstrip('.')}")
    return ready


def check_value(parameter: Parameter, value: Any) -> Any:
    """A given value as the verb takes it.

    Raises:
        BusError: `invalid` or `too_large`, naming the parameter, the rule and a good value.
    """
    if parameter.kind == "string":
        return _text(parameter, value)
    if parameter.kind == "integer":
        return _integer(parameter, value)
    if parameter.kind == "array":
        return _array(parameter, value)
    if isinstance(value, bool):
        return value
    raise invalid(parameter.name, f"must be JSON true or false, got {_shown(value)}", "Use true or false.")


def _text(parameter: Parameter, value: Any) -> str:
    name = parameter.name
    if parameter.param.json and isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        raise invalid(name, f"must be a text, got {_shown(value)}", 'Put it in quotes, for example "x".')
    if parameter.words and value not in parameter.words:
        words = [w for w in parameter.words if w]
        rule = f"must be {', '.join(words[:-1])} or {words[-1]}, got {_shown(value)}"
        raise invalid(name, rule, f'Use "{parameter.default or words[0]}".')
    return _whole(name, value, parameter.param.max_chars)


def _whole(name: str, value: str, limit: int) -> str:
    if limit and len(value) > limit:
        raise too_large(name, len(value), limit)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise invalid(name, "must be valid Unicode, it holds a lone surrogate", "Send UTF-8 text.") from None
    return value


def _integer(parameter: Parameter, value: Any) -> int:
    name, low, high = parameter.name, parameter.param.low, parameter.param.high
    good = f"Use a number from {low} to {high}." if high is not None else "Use a whole number."
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value != value
        or value in (float("inf"), float("-inf"))
        or int(value) != value
    ):
        raise invalid(name, f"must be a whole number, got {_shown(value)}", good)
    number = int(value)
    if low is not None and number < low:
        raise invalid(name, f"must be at least {low}, got {number}", good)
    if high is not None and number > high:
        if parameter.param.clamp:
            return high
        raise invalid(name, f"must be at most {high}, got {number}", good)
    return number


def _array(parameter: Parameter, value: Any) -> list[str]:
    name = parameter.name
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if parameter.param.json and isinstance(value, list):
        value = [json.dumps(item, ensure_ascii=False) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise invalid(name, "must be an array of texts", 'For example ["a.py", "b.py"].')
    if parameter.param.max_items and len(value) > parameter.param.max_items:
        raise too_large(name, len(value), parameter.param.max_items, "items")
    return [_whole(f"an item of {name}", item, parameter.param.max_chars) for item in value]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"
