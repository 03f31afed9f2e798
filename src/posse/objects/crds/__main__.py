"""Writes the definitions to `deploy/crds/`, or with `--check` fails where they differ."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from posse.objects.crds import definitions

_HEADER = "# Made by `python -m posse.objects.crds`; edit that package instead.\n"


class _PlainDumper(yaml.SafeDumper):
    """Writes equal parts out each time: an alias would be one more thing to understand."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def rendered() -> dict[str, str]:
    """File names and their texts."""
    return {
        f"{definition['metadata']['name']}.yaml": _HEADER
        + yaml.dump(definition, Dumper=_PlainDumper, sort_keys=False, width=100)
        for definition in definitions()
    }


def main(arguments: list[str], folder: Path = Path("deploy/crds")) -> int:
    files = rendered()
    if "--check" not in arguments:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return 0
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))}
    drifted = sorted(name for name in {**files, **found} if files.get(name) != found.get(name))
    for name in drifted:
        print(f"{folder / name} is not what posse.objects.crds says")
    if drifted:
        print("run python -m posse.objects.crds")
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
