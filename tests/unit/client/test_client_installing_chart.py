"""The chart says what the objects say, for every choice of values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.client.installing import Options, objects
from posse.client.installing.__main__ import main, rendered
from posse.client.installing.chart import VALUES, chart
from posse.objects.kinds import CUSTOM_RESOURCE_DEFINITION

_GUARDED = r"\{\{- if (?P<condition>.*?) \}\}\n(?P<body>.*?)\{\{- end \}\}\n"


def render(values: dict[str, Any]) -> list[dict[str, Any]]:
    """What Helm makes of the templates: they may hold nothing that this does not know."""
    made = []
    for name, text in chart("# made\n").items():
        if not name.startswith("templates/"):
            continue
        text = re.sub(
            _GUARDED, lambda g: g["body"] * _holds(g["condition"], values), text, flags=re.S
        )
        for key in ("image", "replicas", "namespace"):
            text = text.replace(f"{{{{ .Values.{key} }}}}", str(values[key]))
        for key in ("kinds", "claims"):
            text = text.replace(f'{{{{ join "," .Values.{key} }}}}', ",".join(values[key]))
            listed = json.dumps(values[key], separators=(",", ":"))
            text = text.replace(f"{{{{ toJson .Values.{key} }}}}", listed)
        assert "{{" not in text, text
        made.append(yaml.safe_load(text))
    return [obj for obj in made if obj is not None]


def _holds(condition: str, values: dict[str, Any]) -> bool:
    if kind := re.fullmatch(r'has "(\w+)" \.Values\.kinds', condition):
        return kind[1] in values["kinds"]
    if condition.startswith(("not (lookup ", "ne .Release.Namespace ")):
        return True  # nothing is there yet
    assert condition.startswith(".Capabilities.APIVersions.Has "), condition
    return False


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"kinds": ["TFJob"]},
        {"kinds": ["MPIJob"], "claims": ["posse", "volcano"]},
        {"image": "mirror/posse:9", "replicas": 3, "namespace": "gangs"},
    ],
    ids=str,
)
def test_the_chart_makes_the_same_objects(chosen: dict[str, Any]) -> None:
    values = VALUES | chosen
    options = Options(
        image=values["image"],
        replicas=values["replicas"],
        namespace=values["namespace"],
        kinds=tuple(values["kinds"]),
        claims=tuple(values["claims"]),
    )
    wanted = [o for o in objects(options) if o["kind"] != CUSTOM_RESOURCE_DEFINITION.kind]
    made = render(values)
    for obj in made:
        obj["metadata"].pop("annotations", None)
    assert _by_name(made) == _by_name(wanted)


def _by_name(made: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in made}


def test_what_outlives_posse_is_kept_by_helm() -> None:
    kept = {
        obj["metadata"]["name"]
        for obj in render(VALUES)
        if obj["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    assert kept == {"default", "posse-policy", "posse-high", "posse-low"}


def test_the_files_are_what_the_objects_say() -> None:
    root = Path(__file__).parents[3] / "deploy"
    assert main(["--check"], root) == 0


def test_a_file_that_was_edited_or_left_behind_is_found(tmp_path: Path) -> None:
    main([], tmp_path)
    assert main(["--check"], tmp_path) == 0
    (tmp_path / "helm/posse/templates/stray.yaml").write_text("kind: Stray\n")
    assert main(["--check"], tmp_path) == 1
    main([], tmp_path)
    (tmp_path / "install.yaml").write_text("edited\n")
    assert main(["--check"], tmp_path) == 1


def test_the_manifest_has_every_object() -> None:
    text = rendered()["install.yaml"]
    assert list(yaml.safe_load_all(text)) == objects(Options())
