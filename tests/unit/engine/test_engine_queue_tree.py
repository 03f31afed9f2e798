"""The tree of queues by itself: use, shares, what is deserved, and who may take from whom."""

from __future__ import annotations

import pytest

from posse.engine.cycle import cycle
from posse.engine.facts import DEFAULT_QUEUE, QueueFacts
from posse.engine.policy import Policy
from posse.engine.queues.tree import QueueTree
from posse.engine.view import View
from tests.scenarios.language import GPU, arrives, ends, gang, nodes, queue, vanishes

QUIET = Policy(preemption=False, reclaim=False, backfill=False)


def using(tree: QueueTree, name: str) -> int:
    return tree.named(tree.allocated(name)).get(GPU, 0)


def deserving(tree: QueueTree, name: str) -> int:
    return tree.named(tree.deserved(name)).get(GPU, 0)


def view_of(*queues: QueueFacts, use: dict[str, int], want: dict[str, int] | None = None) -> View:
    """16 GPUs, of which queues `use` some; gangs of theirs `want` more."""
    view = View()
    arrives(*nodes(2, gpus=8, cores=64), *queues)(view)
    seats = [f"node-{at}" for at in range(2) for _ in range(8)]
    for name, number in use.items():
        on, seats = seats[:number], seats[number:]
        if number:
            arrives(gang(f"runs-{name}", workers=number, gpus=1, queue=name, on=on))(view)
    for name, number in (want or {}).items():
        arrives(gang(f"wants-{name}", workers=number, gpus=1, queue=name))(view)
    return view


# -- use ---------------------------------------------------------------------------------------


def test_use_is_counted_in_a_queue_and_all_above_it() -> None:
    tree = view_of(
        queue("root"), queue("a"), queue("b", parent="a"), queue("c", parent="a"),
        use={"b": 3, "c": 2, "default": 1},
    ).tree  # fmt: skip
    assert [using(tree, name) for name in ("b", "c", "a", "root", "default")] == [3, 2, 5, 6, 1]


def test_a_queue_that_moves_takes_its_use_along() -> None:
    view = view_of(queue("a"), queue("b", parent="a"), use={"b": 3})
    assert using(view.tree, "a") == 3
    view.set_queue(queue("b"))
    assert (using(view.tree, "a"), using(view.tree, "b")) == (0, 3)


def test_what_runs_in_a_queue_that_is_gone_is_still_counted() -> None:
    view = view_of(queue("a"), use={"a": 3})
    view.remove_queue("a")
    assert using(view.tree, "a") == 3
    vanishes("runs-a")(view)
    assert using(view.tree, "a") == 0


def test_pods_that_came_before_their_group_are_counted_when_it_comes() -> None:
    view = View()
    team = gang("g", workers=2, gpus=1, queue="a", on=["node-0", "node-0"])
    arrives(*nodes(1, gpus=8), queue("a"), *team.pods)(view)
    assert using(view.tree, "a") == 0
    view.set_queue_of("team/g", "a")
    assert using(view.tree, "a") == 2
    view.set_group(team.group)
    assert using(view.tree, "a") == 2
    view.validate()


def test_a_tentative_charge_goes_back_kept_or_not() -> None:
    view = view_of(queue("a", gpus=8), queue("b", parent="a"), use={"b": 3})
    for keep in (False, True):
        with view.tentatively() as attempt:
            view.tree.charge("b", -view.tree.vector({GPU: 2}))
            assert (using(view.tree, "a"), using(view.tree, "b")) == (1, 1)
            with view.tentatively():
                view.tree.charge("b", view.tree.vector({GPU: 5}))
                assert using(view.tree, "a") == 6
            assert using(view.tree, "a") == 1
            if keep:
                attempt.keep()
        assert (using(view.tree, "a"), using(view.tree, "b")) == (3, 3)
    view.validate()


def test_many_queues_and_new_resources_come_and_go() -> None:
    view = View()
    for at in range(40):
        view.set_queue(QueueFacts(f"q{at}", parent=f"q{at - 1}" if at % 4 else ""))
        view.set_queue(QueueFacts(f"q{at}", capability=((f"example.com/r{at}", 1),)))
        arrives(gang(f"g{at}", workers=1, queue=f"q{at}", extra={f"example.com/r{at}": 1}))(view)
        view.validate()
    for at in range(40):
        view.remove_queue(f"q{at}")
        view.validate()
    assert list(view.tree.problems()) == []


# -- shares ------------------------------------------------------------------------------------


def test_a_share_of_one_is_just_what_is_due() -> None:
    tree = view_of(queue("a", weight=3), queue("b"), use={"a": 12, "b": 4}).tree
    # `default` is always there, and has a weight of one.
    assert tree.share("a") == pytest.approx(12 / 16 * 5 / 3)
    assert tree.share("b") == pytest.approx(4 / 16 * 5)


def test_what_is_deserved_by_word_is_what_a_share_is_of() -> None:
    tree = view_of(queue("a", deserved=8), queue("b", deserved=0), use={"a": 4, "b": 0}).tree
    assert tree.share("a") == 0.5
    assert tree.share("b") == 1.0


DESERVED = [
    ("equal weights share evenly", [queue("a"), queue("b")], {"a": 16, "b": 16}, {"a": 8, "b": 8}),
    (
        "by weight",
        [queue("a", weight=3), queue("b")],
        {"a": 16, "b": 16},
        {"a": 12, "b": 4},
    ),
    ("what one does not want, others get", [queue("a"), queue("b")], {"a": 2, "b": 16},
     {"a": 2, "b": 14}),
    ("nobody deserves more than it may use", [queue("a", gpus=3), queue("b")],
     {"a": 16, "b": 16}, {"a": 3, "b": 13}),
    ("nor less than its guarantee", [queue("a", guarantee=10), queue("b", weight=9)],
     {"a": 16, "b": 16}, {"a": 10, "b": 6}),
    ("a word comes before weights", [queue("a", deserved=10), queue("b"), queue("c")],
     {"a": 16, "b": 16, "c": 16}, {"a": 10, "b": 3, "c": 3}),
    ("what was said to be a queue's and it does not want, others share meanwhile",
     [queue("a", deserved=10), queue("b"), queue("c")],
     {"a": 4, "b": 16, "c": 16}, {"a": 10, "b": 6, "c": 6}),
    ("inside a parent, of what the parent deserves",
     [queue("a"), queue("b", parent="a", weight=3), queue("c", parent="a"), queue("d")],
     {"b": 16, "c": 16, "d": 16}, {"a": 8, "b": 6, "c": 2, "d": 8}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("why", "queues", "want", "deserve"), DESERVED, ids=[row[0] for row in DESERVED]
)
def test_what_each_queue_deserves(
    why: str, queues: list[QueueFacts], want: dict[str, int], deserve: dict[str, int]
) -> None:
    tree = view_of(*queues, use={}, want=want).tree
    assert {name: deserving(tree, name) for name in deserve} == deserve


# -- who may take from whom --------------------------------------------------------------------

GIVING = [
    ("above its due, and still no poorer", [queue("a"), queue("b")], {"a": 12, "b": 4}, 4, True),
    ("above its due, but poorer then", [queue("a"), queue("b")], {"a": 10, "b": 6}, 4, False),
    ("at its due", [queue("a"), queue("b")], {"a": 8, "b": 8}, 1, False),
    ("not reclaimable", [queue("a", reclaimable=False), queue("b")], {"a": 16, "b": 0}, 1, False),
    ("part of one that is not",
     [queue("p", reclaimable=False), queue("a", parent="p"), queue("b")],
     {"a": 16, "b": 0}, 1, False),
    ("down to its guarantee", [queue("a", guarantee=15), queue("b")], {"a": 16, "b": 0}, 1, True),
    ("and no further", [queue("a", guarantee=16), queue("b")], {"a": 16, "b": 0}, 1, False),
    ("to one of higher priority even from its due", [queue("a"), queue("b", priority=1)],
     {"a": 2, "b": 14}, 2, True),
    ("but not below its guarantee", [queue("a", guarantee=1), queue("b", priority=1)],
     {"a": 2, "b": 14}, 2, False),
    ("never to one of lower priority", [queue("a", priority=1), queue("b")],
     {"a": 16, "b": 0}, 1, False),
    ("beyond what it deserves by its own word", [queue("a", deserved=4), queue("b", deserved=12)],
     {"a": 8, "b": 8}, 2, True),
    ("siblings inside one parent", [queue("p"), queue("a", parent="p"), queue("b", parent="p")],
     {"a": 12, "b": 0}, 4, True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("why", "queues", "use", "amount", "gives"), GIVING, ids=[row[0] for row in GIVING]
)
def test_what_a_queue_must_give(
    why: str, queues: list[QueueFacts], use: dict[str, int], amount: int, gives: bool
) -> None:
    tree = view_of(*queues, use=use, want={"a": 16, "b": 16}).tree
    amounts = tree.vector({GPU: amount})
    assert tree.may_give("a", amounts, "b", amounts) is gives


def test_a_queue_may_take_up_to_its_due() -> None:
    tree = view_of(queue("a"), queue("b"), use={"a": 12, "b": 4}, want={"a": 9, "b": 9}).tree
    assert tree.may_take("b", tree.vector({GPU: 4}))
    assert not tree.may_take("b", tree.vector({GPU: 5}))


def test_inside_a_parent_only_what_is_inside_counts() -> None:
    """The parent has more than its due already; that is nothing between two of its parts."""
    tree = view_of(
        queue("p"), queue("a", parent="p"), queue("b", parent="p"), queue("c"),
        use={"a": 12, "b": 0, "c": 4}, want={"b": 9, "c": 12},
    ).tree  # fmt: skip
    assert not tree.may_take("b", tree.vector({GPU: 2}))
    assert tree.may_take("b", tree.vector({GPU: 2}), giver="a")


# -- not looked at twice -----------------------------------------------------------------------


def test_a_gang_that_a_quota_stops_is_looked_at_again_when_that_quota_eases() -> None:
    view = view_of(
        queue("a", gpus=4), queue("b", gpus=4), use={"a": 4, "b": 4}, want={"a": 2, "b": 2}
    )
    arrives(gang("small", workers=1, gpus=1, queue="a", on=["node-1"]))(view)
    list(cycle(view, QUIET, 0.0))
    assert len(view.shortfalls.awakened()) == 0
    vanishes("runs-b")(view)
    list(cycle(view, QUIET, 1.0))
    assert [s.signature[0] for s in view.shortfalls.awakened()] == []
    arrives(*nodes(1, prefix="new", gpus=8))(view)
    assert [s.signature[0] for s in view.shortfalls.awakened()] == [], "room is not what it lacks"
    ends("small-worker-0")(view)
    assert [s.signature[0] for s in view.shortfalls.awakened()] == ["a"]


def test_raising_a_limit_wakes_those_below_it() -> None:
    view = view_of(queue("p", gpus=4), queue("a", parent="p"), use={"a": 4}, want={"a": 2})
    list(cycle(view, QUIET, 0.0))
    assert view.shortfalls.awakened() == []
    view.set_queue(queue("p", gpus=8))
    assert len(view.shortfalls.awakened()) == 1


def test_default_is_a_queue_without_an_object() -> None:
    tree = View().tree
    assert tree.known(DEFAULT_QUEUE)
    assert not tree.known("a")
