"""Writes `deploy/install.yaml` and the Helm chart, or with `--check` fails where they differ."""

from __future__ import annotations

import sys
from pathlib import Path

from posse.client.installing.chart import chart
from posse.client.installing.documents import documents
from posse.client.installing.objects import objects
from posse.client.installing.options import Options

_HEADER = "# Made by `python -m posse.client.installing`; edit that package instead.\n"
_CHART = "helm/posse"


def rendered() -> dict[str, str]:
    """File names under `deploy/` and their texts."""
    files = {"install.yaml": _HEADER + documents(objects(Options()))}
    return files | {f"{_CHART}/{name}": text for name, text in chart(_HEADER).items()}


def main(arguments: list[str], folder: Path = Path("deploy")) -> int:
    files = rendered()
    found = {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in (folder / "install.yaml", *sorted((folder / _CHART).rglob("*")))
        if path.is_file()
    }
    if "--check" not in arguments:
        for name in found:
            if name not in files:
                (folder / name).unlink()
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        return 0
    drifted = sorted(name for name in {**files, **found} if files.get(name) != found.get(name))
    for name in drifted:
        print(f"{folder / name} is not what posse.client.installing says")
    if drifted:
        print("run python -m posse.client.installing")
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
