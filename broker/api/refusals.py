"""One error for a whole request, in the form its API has for it.

APIs report errors in two shapes: one ``error_code`` at the top of the response, or one per item
(topic, partition, group) that the request named. ``refusal`` builds either from the classes: it
walks the response's lists of structures beside the request's, copies what both name (``name``,
``topic_id``, ``partition_index`` ...) and sets the code wherever there is a field for it.
An API where that is not right registers its own function with ``@serves(..., refuse=...)``.
"""

from __future__ import annotations

import re
import typing
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

from barnabas.broker.api.dispatch import CloseConnection, Route
from barnabas.protocol.errors import ErrorCode, KafkaError

DENIALS: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}

# The same thing under different names in a request and its response.
_SYNONYMS = {
    "partition_index": ("partition", "index"),
    "partition": ("partition_index", "index"),
    "index": ("partition_index", "partition"),
    "key": ("coordinator_keys",),
    "group_id": ("groups", "groups_names"),
}


def refusal(route: Route, request: Any, error: KafkaError) -> Any:  # noqa: ANN401
    """Return the response of ``route`` that reports ``error``.

    Raises CloseConnection if the API has no field for the error, or the request has no item that
    could have it. A denied request without items gets an empty response, as in Kafka.
    """
    response = refusal_or_nothing(route, request, error)
    if route.refuse is None and error.code not in DENIALS and not says_error(response):
        raise CloseConnection(str(error)) from error
    return response


def refusal_or_nothing(route: Route, request: Any, error: KafkaError) -> Any:  # noqa: ANN401
    """Return the response of ``refusal``, or an empty one if no item can have an error."""
    if route.refuse is not None:
        return route.refuse(request, error.code, error.message)
    return mirror(response_class_of(route.name), request, error.code, error.message)


def refusal_unread(route: Route, version: int, error: KafkaError) -> Any:  # noqa: ANN401
    """Return the response that reports ``error`` for a request that was not decoded.

    Raises CloseConnection if this version of the API has no error for a whole request.
    """
    response = refusal(route, message_class_of(route.name, "Request")(), error)
    wire = b"".join(route.api.encode_response(response, version))
    if not says_error(route.api.decode_response(memoryview(wire), 0, version)):
        raise CloseConnection(str(error)) from error
    return response


def response_class_of(name: str) -> type:
    """Return the response class of an API."""
    return message_class_of(name, "Response")


@cache
def message_class_of(name: str, kind: str) -> type:
    """Return the class of an API's requests or responses, from the module of the API's name."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    found: type = getattr(import_module(f"barnabas.protocol.messages.{snake}"), f"{name}{kind}")
    return found


def mirror(
    response_class: type,
    request: Any,  # noqa: ANN401
    code: ErrorCode,
    message: str | None,
) -> Any:  # noqa: ANN401
    """Return a response with ``code`` at the top, and at every item that the request names.

    It is in both places because one class holds all versions, and some APIs moved the error from
    one place to the other.
    """
    response = response_class()
    for name, item_class in _shape(response_class):
        if name == "error_code":
            response.error_code = int(code)
        elif name == "error_message":
            response.error_message = message
        elif item_class is not None:
            items = _items_for(item_class, request)
            setattr(response, name, [mirror(item_class, item, code, message) for item in items])
        else:
            _copy(response, name, request)
    return response


def says_error(response: Any) -> bool:  # noqa: ANN401
    """Return whether an error code is set somewhere in ``response``."""
    response_class: type = type(response)
    for name, item_class in _shape(response_class):
        value = getattr(response, name)
        if name == "error_code" and value:
            return True
        if item_class is not None and any(says_error(item) for item in value or ()):
            return True
    return False


def _items_for(item_class: type, request: Any) -> list[Any]:  # noqa: ANN401
    """Return the request's list whose items have the same keys as ``item_class``."""
    names = {name for name, _ in _shape(item_class)}
    best: list[Any] = []
    most = 0
    if not is_dataclass(request):
        return best
    for field in fields(request):
        value = getattr(request, field.name)
        if not isinstance(value, list) or not value:
            continue
        if is_dataclass(value[0]):
            common = sum(_source(name, value[0]) is not None for name in names)
        else:  # bare names or numbers: partition indexes, group ids
            common = 1
        if common > most:
            best, most = value, common
    return best


def _copy(target: Any, name: str, source: Any) -> None:  # noqa: ANN401
    if not is_dataclass(source):
        if name in _SYNONYMS or name == "name":
            setattr(target, name, source)
        return
    found = _source(name, source)
    if found is not None:
        setattr(target, name, getattr(source, found))


def _source(name: str, source: Any) -> str | None:  # noqa: ANN401
    for candidate in (name, *_SYNONYMS.get(name, ())):
        if hasattr(source, candidate) and not isinstance(getattr(source, candidate), list):
            return candidate
    return None


@cache
def _shape(message_class: type) -> tuple[tuple[str, type | None], ...]:
    """Return each field's name, and the class of its items if it is a list of structures."""
    hints = typing.get_type_hints(message_class)
    return tuple((field.name, _item_class(hints[field.name])) for field in fields(message_class))


def _item_class(hint: Any) -> type | None:  # noqa: ANN401
    """Return the dataclass of a list's items, or None if the field is no such list."""
    if typing.get_origin(hint) is list:
        return _dataclass_in(hint)
    found = (_item_class(argument) for argument in typing.get_args(hint))
    return next((item for item in found if item is not None), None)


def _dataclass_in(hint: Any) -> type | None:  # noqa: ANN401
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    for argument in typing.get_args(hint):
        found = _dataclass_in(argument)
        if found is not None:
            return found
    return None
