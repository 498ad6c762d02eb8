"""The key of `unique`: canonical JSON of members of the payload. Every library of pg_pulse makes
the same key of the same payload, and clients/vectors has examples that all libraries pass."""
import decimal
import hashlib
import json
from collections.abc import Iterable

from .document import NotJson, encode, list_of

_MAX_BYTES = 256  # a longer key is its digest
_MAX_NUMBER = 2**53 - 1
_text = json.JSONEncoder(ensure_ascii=False).encode


def _canonical_number(value):
    if not abs(value) <= _MAX_NUMBER:
        raise NotJson(f"a unique key has the number {value}: give it as a text")
    if value == int(value):
        return str(int(value))
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa
    # As JavaScript: 0.000001, and 1e-7.
    return format(decimal.Decimal(repr(value)), "f") if int(exponent) >= -6 \
        else f"{mantissa}e{int(exponent)}"


def _canonical(value):
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_text(k)}:{_canonical(value[k])}' for k in sorted(value))}}}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _canonical_number(value)
    return _text(value)


def unique_key(payload: object, by: Iterable[str] | None = None) -> str:
    """The key of a payload by these members, in any order; without `by` of the whole payload."""
    # As the server gets the payload: dates are texts by then.
    document = json.loads(encode(payload, "the payload"))
    if by is not None:
        by = list_of(by)
        if not isinstance(document, dict):
            raise TypeError("`by` of unique names members, and the payload is no object: leave "
                            "`by` out")
        document = {name: document[name] for name in by if name in document}
    try:
        key = _canonical(document).encode()
    except UnicodeEncodeError:
        raise NotJson("a unique key has half of a surrogate pair") from None
    if len(key) <= _MAX_BYTES:
        return key.decode()
    return f"sha256:{hashlib.sha256(key).hexdigest()}"
