"""What a home lacks, or holds no longer in a usable form, is made; what is whole is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from posse.kube.certificates import Authority, create_authority
from posse.local.supervisor.establishing import establish
from posse.local.supervisor.home import TOKENS, Home
from posse.local.supervisor.options import Options
from posse.world import World

REAL = World.real()


class OtherDay:
    """A clock that is some days off."""

    def __init__(self, days: float) -> None:
        self._seconds = days * 86_400

    def now(self) -> float:
        return REAL.now() + self._seconds

    def monotonic(self) -> float:
        return REAL.monotonic()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def establish_on(home: Home, days: float = 0.0) -> None:
    establish(home, Options(simulate=1), World(OtherDay(days), REAL.chance))


def kept(home: Home) -> dict[str, bytes]:
    files = [home.identity, *home.pki.iterdir(), *(home.token(user) for user in TOKENS)]
    return {str(path): path.read_bytes() for path in files}


def usable(home: Home) -> bool:
    authority = Authority.load(home.pki, REAL)
    pairs = [(home.certificate(s), home.key(s)) for s in ("apiserver", "node")]
    return authority.lasts(30) and all(
        authority.vouches_for(certificate.read_bytes(), key.read_bytes(), days=30)
        for certificate, key in pairs
    )


def test_what_is_whole_is_kept(home: Home) -> None:
    establish_on(home)
    before = kept(home)
    establish_on(home)
    assert kept(home) == before
    assert usable(home)


@pytest.mark.parametrize(
    "days", [-3651, -3630, 30], ids=["expired", "about to expire", "too early"]
)
def test_certificates_of_another_time_are_issued_again(home: Home, days: float) -> None:
    establish_on(home, days)
    assert not usable(home)
    establish_on(home)
    assert usable(home)


@pytest.mark.parametrize(
    "name", ["ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "node.crt", "node.key"]
)
@pytest.mark.parametrize("content", [None, b"", b"garbage"], ids=["absent", "empty", "garbage"])
def test_a_damaged_certificate_or_key_is_replaced(
    home: Home, name: str, content: bytes | None
) -> None:
    establish_on(home)
    if content is None:
        (home.pki / name).unlink()
    else:
        (home.pki / name).write_bytes(content)
    establish_on(home)
    assert usable(home)


def test_a_key_that_belongs_to_another_certificate_is_replaced(home: Home) -> None:
    establish_on(home)
    home.key("node").write_bytes(home.key("apiserver").read_bytes())
    establish_on(home)
    assert usable(home)


def test_certificates_of_another_authority_are_replaced(home: Home) -> None:
    establish_on(home)
    create_authority(REAL).store(home.pki)
    establish_on(home)
    assert usable(home)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"a\x00b"])
def test_a_damaged_token_is_replaced_and_the_others_are_kept(home: Home, content: bytes) -> None:
    establish_on(home)
    before = kept(home)
    home.token("scheduler").write_bytes(content)
    establish_on(home)
    assert len(home.token("scheduler").read_text()) == 64
    changed = [path for path, text in kept(home).items() if before[path] != text]
    assert changed == [str(home.token("scheduler"))]


def test_what_a_kill_left_half_written_is_swept(home: Home) -> None:
    (home.partial / "state.json.x1y2").write_text("half")
    establish_on(home)
    assert list(home.partial.iterdir()) == []
