"""Probes ask, and what they hear has consequences."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.processes.rig import Rig, container, pod, shell

pytestmark = pytest.mark.process

OFTEN = {"periodSeconds": 1, "timeoutSeconds": 5}
SERVER = (
    "import http.server, os\n"
    "class Answer(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        self.send_response(200 if self.path == '/ok' else 500); self.end_headers()\n"
    "    def log_message(self, *_): pass\n"
    "http.server.HTTPServer((os.environ['IP'], int(os.environ['POSSE_PORT_8080'])), Answer)"
    ".serve_forever()\n"
)


def serving(**probes: Any) -> dict[str, Any]:
    address = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    ports = [{"containerPort": 8080, "name": "web"}]
    return pod(container("python3", "-c", SERVER, env=[address], ports=ports, **probes))


async def test_without_a_probe_a_container_is_ready_at_once(rig: Rig) -> None:
    assert await rig.start(pod(container("sleep", "7777"))) is True


@pytest.mark.parametrize(
    "probe",
    [
        {"httpGet": {"path": "/ok", "port": "web"}},
        {"tcpSocket": {"port": 8080}},
    ],
)
async def test_a_server_is_ready_when_it_answers(rig: Rig, probe: dict[str, Any]) -> None:
    one = serving(readinessProbe={**probe, **OFTEN})
    assert await rig.start(one) is False
    await rig.until(lambda: rig.readiness == [("main", True)], "it is ready")


async def test_a_wrong_answer_is_not_ready(rig: Rig) -> None:
    probe = {"httpGet": {"path": "/no", "port": 8080}, "failureThreshold": 2, **OFTEN}
    one = serving(livenessProbe=probe)
    assert await rig.start(one) is True
    how = await rig.over(one)
    assert how.message == "Liveness probe failed: HTTP probe failed with statuscode: 500"


async def test_a_command_in_the_container_decides_and_may_change_its_mind(rig: Rig) -> None:
    probe = {
        "exec": {"command": ["sh", "-c", 'test -e "$HOME/ready"']},
        "failureThreshold": 1,
        **OFTEN,
    }
    tired = 'test -e ${TMPDIR:-/tmp}/tired && rm -f "$HOME/ready"'
    script = f'touch "$HOME/ready"; while :; do sleep 0.05; {tired}; done'
    one = pod(shell(script, readinessProbe=probe))
    assert await rig.start(one) is False
    await rig.until(lambda: ("main", True) in rig.readiness, "it is ready")
    (rig.place(one).tmp / "tired").touch()
    await rig.until(lambda: ("main", False) in rig.readiness, "it is not ready any more")


async def test_who_never_starts_is_ended(rig: Rig) -> None:
    probe = {"exec": {"command": ["false"]}, "failureThreshold": 2, **OFTEN}
    how, _ = await rig.run(pod(container("sleep", "7777", startupProbe=probe)))
    assert how.message == "Startup probe failed: the command ended with 1"


async def test_a_probe_that_hangs_has_failed(rig: Rig) -> None:
    probe = {"exec": {"command": ["sleep", "600"]}, "failureThreshold": 1, "timeoutSeconds": 1}
    how, _ = await rig.run(pod(container("sleep", "7777", livenessProbe=probe)))
    assert "timed out after 1s" in how.message


async def test_after_a_restart_of_the_agent_what_was_ready_is_ready(rig: Rig) -> None:
    one = serving(readinessProbe={"tcpSocket": {"port": 8080}, **OFTEN})
    await rig.start(one)
    await rig.until(lambda: rig.readiness == [("main", True)], "it is ready")
    one["status"]["containerStatuses"] = [{"name": "main", "ready": True}]
    await rig.restart()
    assert await rig.runtime.adopt(one, "main", 0, 0.0) is True
