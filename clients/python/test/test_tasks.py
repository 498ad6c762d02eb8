"""Tasks, and what their annotations make of payloads, without a server."""
import dataclasses
import datetime
import decimal
import typing
from typing import Literal

import pg_pulse
import pytest
from pg_pulse import payload


@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1


@dataclasses.dataclass
class Order:
    lines: list[Line]
    at: datetime.datetime | None = None
    total: decimal.Decimal = decimal.Decimal(0)
    kind: Literal["web", "shop"] = "web"
    tags: dict[str, int | str] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        if not self.lines:
            raise ValueError("an order has lines")


def test_a_payload_becomes_what_the_annotation_says():
    document = {"lines": [{"sku": "a"}, {"sku": "b", "count": 2}], "at": "2026-11-28T12:00:00Z",
                "total": "1.10", "tags": {"n": 1, "t": "x"}, "unknown": True}
    assert payload.convert(Order, document) == Order(
        [Line("a"), Line("b", 2)], datetime.datetime(2026, 11, 28, 12, tzinfo=datetime.UTC),
        decimal.Decimal("1.10"), "web", {"n": 1, "t": "x"})
    assert payload.convert(float, 1) == 1 and payload.convert(list[None], [None]) == [None]


@pytest.mark.parametrize("document, said", [
    (7, "payload: Order is wanted, and int is given"),
    ({}, "lines: is missing"),
    ({"lines": []}, "payload: an order has lines"),
    ({"lines": [{"sku": 1}]}, "lines.0.sku: str is wanted, and int is given"),
    ({"lines": [{"sku": "a", "count": True}]}, "lines.0.count: int is wanted, and bool is given"),
    ({"lines": [{"sku": "a"}], "at": "noon"}, "at: Invalid isoformat string: 'noon'"),
    ({"lines": [{"sku": "a"}], "total": "x"}, "total: 'x' is no number"),
    ({"lines": [{"sku": "a"}], "kind": "fax"}, "kind: one of 'web', 'shop' is wanted"),
    ({"lines": [{"sku": "a"}], "tags": {"n": [1]}}, "tags.n: int is wanted, and list is given"),
])
def test_a_payload_is_refused_with_the_path(document, said):
    with pytest.raises(payload.Refused) as refused:
        payload.convert(Order, document)
    assert str(refused.value) == said


Number = typing.NewType("Number", int)


@dataclasses.dataclass
class Tree:
    constant: typing.ClassVar[tuple[int]] = (1,)
    branches: "list[Tree] | None" = None


@pytest.mark.parametrize("kind", [tuple[int], set[int], Number, datetime.timedelta,
                                  list[tuple[int]], dict[str, Number], str | bytes])
def test_an_annotation_that_no_payload_can_have_is_refused_at_the_definition(kind):
    @dataclasses.dataclass
    class Within:
        part: kind

    for annotation in (kind, Within):
        def act(payload: annotation):
            pass
        with pytest.raises(TypeError, match="a payload cannot be checked against"):
            pg_pulse.task(act)


def test_an_annotation_may_name_itself_and_what_comes_later():
    def act(payload: Tree, job: typing.Any = None, *more):
        pass

    def early(payload: "Later"):
        pass
    tasks = [pg_pulse.task(act), pg_pulse.task(early)]
    # What the producer has no say in is no member.
    assert payload.convert(Tree, {"constant": 7, "branches": [{}]}) == Tree([Tree()])
    with pytest.raises(NameError, match="Later"):
        pg_pulse.work(tasks)
    early.__globals__["Later"] = tuple[int]
    try:
        with pytest.raises(TypeError, match="a payload cannot be checked against tuple"):
            pg_pulse.work(tasks)
    finally:
        del early.__globals__["Later"]


def test_a_handler_that_cannot_be_called_is_refused_at_the_definition():
    def act(payload, *, job):
        pass
    with pytest.raises(TypeError, match="the handler of act is called with the payload, and"):
        pg_pulse.task(act)


def test_a_task_refuses_a_payload_before_the_add():
    @pg_pulse.task("order")
    def act(order: Order):
        pass

    with pytest.raises(pg_pulse.PayloadRefused, match="the payload of order is refused: lines: is"):
        act.add(None, {})
