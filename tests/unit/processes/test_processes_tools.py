from __future__ import annotations

from pathlib import Path

import pytest

from posse.local.node.processes.isolation.namespaces import tool_directories


def test_a_directory_on_path_that_this_user_may_not_enter_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may enter it; as anybody else this is what a PATH inherited from root looks like."""
    closed = tmp_path / "closed"
    (closed / "bin").mkdir(parents=True)
    (tmp_path / "open").mkdir()
    monkeypatch.setenv("PATH", f"{closed}/bin:{tmp_path}/open:relative")
    closed.chmod(0o000)
    try:
        found = tool_directories()
    finally:
        closed.chmod(0o700)
    assert f"{tmp_path}/open" in found
    assert "relative" not in found
