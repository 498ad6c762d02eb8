"""Payloads as annotations say: checked, and converted to dataclasses, dates and so on."""
import dataclasses
import decimal
import enum
import types
import typing
from datetime import date, datetime, time
from functools import cache
from uuid import UUID

# What JSON has for a type, and what makes a value of the type where that is more.
_FORMS = {str: str, bool: bool, int: int, float: (int, float), None: types.NoneType,
          types.NoneType: types.NoneType, list: list, dict: dict, datetime: str, date: str,
          time: str, UUID: str, decimal.Decimal: (str, int, float)}
_MAKERS = {datetime: datetime.fromisoformat, date: date.fromisoformat, time: time.fromisoformat,
           UUID: UUID, decimal.Decimal: lambda value: decimal.Decimal(str(value))}


class Refused(Exception):
    def __init__(self, path, text):
        super().__init__(f"{path or 'payload'}: {text}")


@cache
def _kinds_of_members(kind):
    hints = typing.get_type_hints(kind)
    if typing.is_typeddict(kind):
        return hints
    return {each.name: hints[each.name] for each in dataclasses.fields(kind) if each.init}


def check(kind, known=frozenset()):
    """Raises TypeError for an annotation that convert() has no values for."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in (typing.Any, object, *known) or isinstance(kind, enum.EnumMeta):
        return
    if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
        parts = _kinds_of_members(kind).values()
    elif origin is typing.Literal:
        parts = ()
    elif origin in (typing.Union, types.UnionType, list):
        parts = arguments
    elif (origin or kind) in _FORMS:
        parts = arguments[1:]
    else:
        raise TypeError(f"a payload cannot be checked against {kind}")
    for each in parts:
        check(each, known | {kind})


def convert(kind, value, path=""):
    """The value as an annotation has it. Raises Refused with the path."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in (typing.Any, object):
        return value
    if origin in (typing.Union, types.UnionType):
        return _first_of(arguments, value, path)
    if origin is typing.Literal or isinstance(kind, enum.EnumMeta):
        known = arguments or [each.value for each in kind]
        if value not in known:
            raise Refused(path, f"one of {', '.join(map(repr, known))} is wanted")
        return value if arguments else kind(value)
    has_members = dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)
    _check(kind, dict if has_members else _FORMS.get(origin or kind), value, path)
    if origin is list:
        return [convert(arguments[0], each, _below(path, n)) for n, each in enumerate(value)]
    if origin is dict:
        return {key: convert(arguments[1], each, _below(path, key)) for key, each in value.items()}
    return _made(kind, _members(kind, value, path) if has_members else value, value, path)


def _check(kind, form, value, path):
    if form is None:
        raise TypeError(f"a payload cannot be checked against {kind}")
    if not isinstance(value, form) or (isinstance(value, bool) and kind is not bool):
        name = kind.__name__ if isinstance(kind, type) else kind
        raise Refused(path, f"{name} is wanted, and {type(value).__name__} is given")


def _made(kind, converted, value, path):
    try:
        if dataclasses.is_dataclass(kind):
            return kind(**converted)
        if typing.is_typeddict(kind):
            return value | converted
        return _MAKERS[kind](value) if kind in _MAKERS else value
    except decimal.InvalidOperation:
        raise Refused(path, f"{value!r} is no number") from None
    except ValueError as error:
        raise Refused(path, str(error)) from None


def _below(path, name):
    return f"{path}.{name}" if path else str(name)


def _first_of(kinds, value, path):
    refusals = []
    for kind in sorted(kinds, key=lambda kind: kind is types.NoneType):
        try:
            return convert(kind, value, path)
        except Refused as error:
            refusals.append(error)
    raise refusals[0]


def _members(kind, value, path):
    members = {}
    for name, each in _kinds_of_members(kind).items():
        if name in value:
            members[name] = convert(each, value[name], _below(path, name))
        elif _is_required(kind, name):
            raise Refused(_below(path, name), "is missing")
    return members


def _is_required(kind, name):
    if typing.is_typeddict(kind):
        return name in kind.__required_keys__
    field = kind.__dataclass_fields__[name]
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing
