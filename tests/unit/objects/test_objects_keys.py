"""Keys are declared once, and the documentation says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from posse.objects import keys

ROOT = Path(__file__).parents[3]


def test_the_documentation_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert keys.main(["--check"]) == 0


def test_a_stale_document_is_found_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert keys.main(["--check"]) == 1
    assert "docs/annotations.md" in capsys.readouterr().out
    assert keys.main([]) == 0
    assert keys.main(["--check"]) == 0


def test_every_constant_is_described() -> None:
    constants = {value for name, value in vars(keys).items() if name.isupper() and _is_key(value)}
    described = [annotation.key for annotation in keys.OURS + keys.HONOURED]
    assert sorted(constants) == sorted(described)


def test_our_own_keys_carry_our_prefix() -> None:
    assert all(annotation.key.startswith("posse.dev/") for annotation in keys.OURS)


def _is_key(value: object) -> bool:
    return isinstance(value, str)
