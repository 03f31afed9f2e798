"""Where the recorded answers are kept: one file for each conversation, one line for each answer."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.golden.talking import Answer

DIRECTORY = Path(__file__).parent


def read(conversation: str) -> dict[str, Answer]:
    return msgspec.json.decode(_file(conversation).read_bytes(), type=dict[str, Answer])


def write(conversation: str, answers: dict[str, Answer]) -> None:
    encoder = msgspec.json.Encoder(order="sorted")
    lines = [
        f"{encoder.encode(label).decode()}: {encoder.encode(answer).decode()}"
        for label, answer in answers.items()
    ]
    _file(conversation).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _file(conversation: str) -> Path:
    return DIRECTORY / f"{conversation.removeprefix('golden-')}.json"
