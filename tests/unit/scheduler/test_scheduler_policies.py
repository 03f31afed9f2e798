"""The policy file, and what a frozen scheduler does."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
import yaml

from posse.engine.facts import Keeps, Purpose
from posse.engine.policy import Policy
from posse.objects.times import parse_time
from posse.scheduler.choices import BY_FIELD, CHOICES, PolicyError, changes
from posse.scheduler.fencing import Fence, WriteWhileFrozen
from posse.scheduler.observing import Observer
from posse.scheduler.policies import Policies, load_policy, read_policy
from posse.scheduler.reading.keeps import read_keeps, write_keeps
from tests.unit.scheduler.rig import Rig, group, pod

pytestmark = pytest.mark.looptime

LEASE = "/leases"


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("", Policy()),
        ("# nothing but words\n", Policy()),
        ("{}", Policy()),
        ("frozen: true", Policy(frozen=True)),
        ("releaseAfter: 90", Policy(release_after=90.0)),
        ("releaseAfter: 1m30s\nsearchSteps: 5", Policy(release_after=90.0, search_steps=5)),
        ('{"frozen": false, "searchSteps": 1}', Policy(search_steps=1)),
        ("claims: [posse, volcano]", Policy(claims=("posse", "volcano"))),
        ("placement: spread", Policy(spread=True)),
        ("placement: pack", Policy(spread=False)),
        ("tiers: [example.com/switch, zone]", Policy(tiers=("example.com/switch", "zone"))),
        ("tiers: []", Policy(tiers=())),
        (
            "shareWeights: {nvidia.com/gpu: 2.5, cpu: 0}",
            Policy(share_weights=(("cpu", 0), ("nvidia.com/gpu", 2500))),
        ),
        ("preemption: false\nreclaim: false", Policy(preemption=False, reclaim=False)),
        ("backfill: false", Policy(backfill=False)),
        ("minRuntime: 1h\nmostEvictions: 1", Policy(min_runtime=3600.0, most_evictions=1)),
        ("startTimeout: 0", Policy(start_timeout=0.0)),
        ("reserveAfter: 0\nmostOvertakes: 0", Policy(reserve_after=0.0, most_overtakes=0)),
        ("repairHold: 90s\npreemptionHold: 2m", Policy(repair_hold=90.0, preemption_hold=120.0)),
    ],
)
async def test_what_a_file_says(text: str, policy: Policy) -> None:
    assert read_policy(text) == policy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("frosen: true", "unknown key frosen; did you mean frozen?"),
        ("release_after: 5", "unknown key release_after; did you mean releaseAfter?"),
        ("colour: red", "unknown key colour; known are frozen, claims, placement, tiers,"),
        ("3: 4", "unknown key 3; known are frozen, claims, placement, tiers,"),
        ("frozen: yes please", "frozen must be true or false, not 'yes please'"),
        ("frozen: 1", "frozen must be true or false, not 1"),
        ("frozen:", "frozen must be true or false, not None"),
        ("releaseAfter: -1", "releaseAfter must be seconds or a duration such as 30s, not -1"),
        ("releaseAfter: .nan", "releaseAfter must be seconds or a duration such as 30s, not nan"),
        ("releaseAfter: .inf", "releaseAfter must be 1000000000 seconds at most, not inf"),
        ("repairHold: 1000000001", "repairHold must be 1000000000 seconds at most, not 1000000001"),
        ("repairHold: 300000h", "repairHold must be 1000000000 seconds at most, not '300000h'"),
        (f"minRuntime: 1{'0' * 400}", "minRuntime must be 1000000000 seconds at most, not 10000"),
        ("releaseAfter: -.inf", "releaseAfter must be seconds or a duration such as 30s, not -inf"),
        ("releaseAfter: true", "releaseAfter must be seconds or a duration such as 30s, not True"),
        (
            "releaseAfter: soon",
            "releaseAfter must be seconds or a duration such as 30s, not 'soon'",
        ),
        ("searchSteps: 0", "searchSteps must be a whole number from 1 to 1000000000, not 0"),
        ("searchSteps: 1.5", "searchSteps must be a whole number from 1 to 1000000000, not 1.5"),
        ("frozen: true\nfrozen: false", "frozen is there twice"),
        ("claims: posse", "claims must be a list of names, not 'posse'"),
        ("claims: []", "claims must name a scheduler at least"),
        ("claims: [posse, posse]", "claims has posse twice"),
        ("claims: ['no name']", "claims has 'no name', which is no scheduler's name"),
        ("placement: pile", "placement must be pack or spread, not 'pile'"),
        ("tiers: [a b]", "tiers has 'a b', which is no key of a label"),
        ("tiers: ['x/']", "tiers has 'x/', which is no key of a label"),
        ("shareWeights: [cpu]", "shareWeights must be numbers by resource, not ['cpu']"),
        ("shareWeights: {cpu: -1}", "shareWeights must be numbers from 0 to 1000 by resource"),
        ("shareWeights: {cpu: yes}", "shareWeights must be numbers from 0 to 1000 by resource"),
        ("mostEvictions: 0", "mostEvictions must be a whole number from 1"),
        ("minRuntime: -1s", "minRuntime must be 0, seconds or a duration such as 30s"),
        ("- frozen", "must be a mapping of keys to values"),
        ("frozen: [", "not YAML: "),
        ("? [a]\n: b", "not YAML: "),
        ("[" * 5000, "not YAML: "),
        ("a: !!python/object:os.system x", "not YAML: "),
    ],
)
async def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(PolicyError) as raised:
        read_policy(text)
    assert str(raised.value).startswith(says)
    assert "\n" not in str(raised.value)


async def test_the_longest_hold_ends_on_a_date_that_can_be_written() -> None:
    hold = read_policy("repairHold: 1000000000").repair_hold
    keeps = Keeps(Purpose.REPAIR, (("w", "n"),), parse_time("2999-01-01T00:00:00Z") + hold)
    assert read_keeps(write_keeps(keeps)) == keeps


async def test_every_choice_has_a_key_and_the_default_it_says() -> None:
    assert set(Policy.__struct_fields__) == set(BY_FIELD)
    told = {c.key: yaml.safe_load(c.default) for c in CHOICES if c.key != "claims"}
    assert read_policy(yaml.safe_dump(told)) == Policy()


async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    with pytest.raises(PolicyError, match=r"policy.yaml: No such file"):
        load_policy(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match=r"policy.yaml: not UTF-8"):
        load_policy(file)
    file.write_bytes(b"#" * (2 << 20))
    with pytest.raises(PolicyError, match=r"policy.yaml: larger than 1 MiB"):
        load_policy(file)


async def test_a_bad_file_keeps_the_last_good_policy_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("searchSteps: 7")
    policies = Policies(Policy(), file, Observer())
    following = asyncio.create_task(policies.follow())
    file.write_text("searchSteps: many")
    await asyncio.sleep(20)
    assert policies.current == Policy(search_steps=7)
    assert "searchSteps must be" in policies.problem
    said = [r for r in caplog.records if "the last good one stays in force" in r.getMessage()]
    assert len(said) == 1
    file.unlink()
    await asyncio.sleep(5)
    assert policies.current == Policy(search_steps=7)
    file.write_text("searchSteps: 8")
    await asyncio.sleep(5)
    assert policies.current == Policy(search_steps=8)
    assert policies.problem == ""
    following.cancel()


@pytest.mark.parametrize("nothing", ["", " \n\n"])
@pytest.mark.parametrize(
    ("text", "stays", "says"),
    [
        ("frozen: true", Policy(frozen=True), "policy.yaml: empty; `{}` stands for the defaults"),
        ("", Policy(), ""),
        ("# as it comes\n", Policy(), ""),
    ],
)
async def test_a_file_that_becomes_empty_lifts_no_brake(
    tmp_path: Path, text: str, nothing: str, stays: Policy, says: str
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    policies = Policies(Policy(), file, Observer())
    following = asyncio.create_task(policies.follow())
    file.write_text(nothing)
    await asyncio.sleep(5)
    assert policies.current == stays
    assert policies.problem.removeprefix(f"{tmp_path}/") == says
    file.write_text("{}")
    await asyncio.sleep(5)
    assert (policies.current, policies.problem) == (Policy(), "")
    following.cancel()


async def test_a_scheduler_does_not_start_with_a_bad_file(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("colour: red")
    with pytest.raises(PolicyError, match="unknown key colour"):
        await Rig().start(policy_file=file)


def _other_writes(rig: Rig) -> list[str]:
    return [f"{w.method} {w.path}" for w in rig.api.writes if LEASE not in w.path]


async def test_frozen_it_decides_and_logs_and_writes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "posse.scheduler")
    rig = Rig()
    rig.nodes(2)
    rig.gang("fits", 2)
    rig.gang("large", 3)
    rig.api.put("podgroups", group("bad", 1, annotations={"posse.dev/expects": "nonsense"}))
    async with rig.running(policy=Policy(frozen=True)):
        await rig.settle(60)
        assert _other_writes(rig) == []
        assert rig.api.placed() == {}
    said = [r.getMessage() for r in caplog.records]
    assert "frozen: ns/fits would start: bind ns/fits-0 to n0, ns/fits-1 to n1" in said
    assert any(s.startswith("frozen: ns/large waits: ") for s in said)
    assert any(s.startswith("frozen: no event Quarantined: ") for s in said)


async def test_frozen_a_half_bound_gang_is_let_go_in_words_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "posse.scheduler")
    rig = Rig()
    rig.nodes(1)
    rig.api.put("podgroups", group("half", 2))
    rig.api.put("pods", pod("half-0", "half", nodeName="n0"))
    rig.api.put("pods", pod("half-1", "half"))
    async with rig.running(policy=Policy(frozen=True, release_after=5.0)):
        await rig.settle(60)
        assert _other_writes(rig) == []
    said = [r.getMessage() for r in caplog.records]
    assert any(s.startswith("frozen: ns/half would be let go (ns/half-0): ") for s in said)


async def test_what_was_decided_counts_for_what_follows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "posse.scheduler")
    rig = Rig()
    rig.nodes(1)
    rig.gang("first", 1)
    async with rig.running(policy=Policy(frozen=True)):
        await rig.settle()
        rig.gang("second", 1)
        await rig.settle()
    said = [r.getMessage() for r in caplog.records]
    assert "frozen: ns/first would start: bind ns/first-0 to n0" in said
    assert any(s.startswith("frozen: ns/second waits: ") for s in said)


async def test_thawed_by_the_file_it_starts_what_waits_and_frozen_again_it_stops(
    tmp_path: Path,
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("frozen: true")
    rig = Rig()
    rig.nodes(2)
    rig.gang("a", 2)
    async with rig.running(policy_file=file):
        await rig.settle(30)
        assert rig.api.placed() == {}
        file.write_text("frozen: false")
        await rig.until(lambda: len(rig.bound_of("a")) == 2)
        await rig.settle(10)
        file.write_text("frozen: true")
        await rig.settle(10)
        rig.api.delete("pods", "a-0")
        rig.api.delete("pods", "a-1")
        rig.gang("b", 2)
        before = _other_writes(rig)
        await rig.settle(60)
        assert rig.bound_of("b") == {}
        assert _other_writes(rig) == before


async def test_a_change_of_policy_keeps_the_lease(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("")
    rig = Rig()
    rig.nodes(1)
    async with rig.running(policy_file=file):
        await rig.settle()
        file.write_text("frozen: true")
        for _ in range(200):
            await asyncio.sleep(0.1)
            lease = rig.api.get("leases", "posse-scheduler", "kube-system")
            assert lease["spec"]["holderIdentity"] == "one"


async def test_the_fence_lets_nothing_through_while_frozen() -> None:
    rig = Rig()
    fence = Fence(rig.api, lambda: 60.0, frozen=True)
    with pytest.raises(WriteWhileFrozen):
        await fence.request("POST", "/api/v1/namespaces/ns/pods/a/binding", body=b"{}")
    assert rig.api.attempts == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("placement: spread", "placement is spread, was pack"),
        ("backfill: false", "backfill is false, was true"),
        ("minRuntime: 90", "minRuntime is 1m30s, was 0s"),
        ("mostEvictions: 1", "mostEvictions is 1, was 3"),
        ("shareWeights: {cpu: 0.5}", "shareWeights is {cpu: 0.5}, was {}"),
        ("claims: [a, b]", "claims is [a, b], was []"),
    ],
)
def test_a_change_is_told_as_the_file_has_it(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    assert changes(Policy(), load_policy(file)) == said
