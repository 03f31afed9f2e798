"""Nonsense over the wire and on the command line: refused in words, and nothing stops running."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.processes import Commands
from tests.cluster.wire import Wire

pytestmark = pytest.mark.process

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
TRICKS = ("../x", "..", "a/b", "%2e%2e", "a\0b", "a\nb", "Ü", "😀")
CREDENTIALS = (
    "",
    "Bearer",
    "Bearer x",
    "Bearer {short}",
    "Bearer {token}x",
    "Basic e306",
    "{token}",
)


@pytest.fixture(scope="session")
def wire(commands: Commands) -> Wire:
    return Wire.to(commands)


@pytest.fixture(scope="module", autouse=True)
def unharmed(commands: Commands) -> Iterator[None]:
    """Nothing that is sent here ends a service, or leaves a traceback in a log."""
    before = commands.services()
    yield
    assert commands.services() == before
    for log in sorted((commands.home / "logs").iterdir()):
        assert "Traceback" not in log.read_text(errors="replace"), log.read_text()[-4000:]


def pod(**resources: str) -> dict[str, Any]:
    limits = {
        name.replace("_", "/").replace("nvidia", "nvidia.com"): v for name, v in resources.items()
    }
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    return {"metadata": {"name": "x"}, "spec": {"containers": [container]}}


def config_map(name: Any, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}}


def mpi_job(replicas: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    roles = {
        "Worker": {"replicas": replicas, "template": template},
        "Launcher": {"template": template},
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "x"},
        "spec": {"mpiReplicaSpecs": roles},
    }


def bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines)


# Objects that make no sense.


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        (PODS, pod(nvidia_gpu="-1"), 422),
        (PODS, pod(nvidia_gpu="0.5"), 422),
        (PODS, pod(cpu="NaN"), 400),
        (PODS, pod(cpu="1e999"), 422),
        (PODS, pod(memory="1" * 5000 + "x"), 400),
        (PODS, {"metadata": {"name": "x"}, "spec": {"containers": "all of them"}}, 400),
        (PODS, {"metadata": [], "spec": {}}, 400),
        (PODS, {"metadata": {"name": "x"}, "spec": {"containers": [None]}}, 422),
        (PODS + "?fieldValidation=Strict", {**pod(), "bogus": 1}, 400),
        (MAPS, config_map("n" * 300), 422),
        (MAPS, config_map("x", annotations={"a": "x" * 300_000}), 422),
        (MAPS, config_map("x", labels={"a b": "c"}), 422),
        (MAPS, config_map(7), 400),
        (MAPS, config_map(None), 422),
        *((MAPS, config_map(name), 422) for name in TRICKS),
        (JOBS, mpi_job(-1), 422),
        (JOBS, mpi_job("4"), 422),
        (JOBS, mpi_job(1.5), 422),
        (GROUPS, {**mpi_job(1), "kind": "PodGroup"}, 400),
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_an_object_that_makes_no_sense_is_refused(
    wire: Wire, path: str, value: dict[str, Any], code: int
) -> None:
    answer = wire.post(path, value)
    assert answer.code == code, answer.body[:500]
    assert answer.status["message"]


# Bodies that are no objects.


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b'{"data": {"a": "' + b"x" * (11 << 20) + b'"}}', "application/json", 413),
        (b'{"metadata": {"name": "\xff\xfe"}}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"metadata":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "application/json", 400),
        (b"[" * 100_000, "application/yaml", 400),
        (b"{a: " * 50_000, "application/yaml", 400),
        (bomb().encode(), "application/yaml", 400),
        (b'{"metadata": {"name": "x"}, "data": {"a": NaN}}', "application/json", 400),
        (b'{"metadata": {"name": "x", "generation": 1e999}}', "application/json", 400),
        (b'{"metadata": {"generation": 99999999999999999999}}', "application/json", 400),
        (b"", "application/json", 400),
        (b"null", "application/json", 400),
        (b"{}{}", "application/json", 400),
        (b"a: 1\n---\nb: 2\n", "application/yaml", 400),
        (b"!!python/object/apply:os.system [ls]", "application/yaml", 400),
        (b"\x1f\x8b\x08\x00garbage", "application/json", 400),
        (b"<configmap/>", "application/xml", 415),
        (b"a=b", "application/x-www-form-urlencoded", 415),
        (b"{}", "x" * 5000, 415),
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_a_body_that_is_no_object_is_refused(wire: Wire, body: bytes, kind: str, code: int) -> None:
    answer = wire.ask("POST", MAPS, body, headers={"Content-Type": kind})
    assert answer.code == code, answer.body[:500]
    assert answer.status["message"]


def test_a_repeated_key_is_refused_where_exactness_is_asked_for(wire: Wire) -> None:
    body = b'{"metadata": {"name": "a", "name": "b"}}'
    strict = wire.ask("POST", f"{MAPS}?fieldValidation=Strict", body)
    assert strict.code == 400
    assert 'duplicate field "metadata.name"' in strict.status["message"]


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "%2e%2e%2f..", "..%2f..%2fetc", "a%00b", "%ff", "%zz"]
)
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_path_leads_nowhere_else(wire: Wire, method: str, name: str) -> None:
    body = json.dumps(config_map("x")).encode()
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = wire.ask(method, f"{MAPS}/{name}", body, headers={"Content-Type": kind})
    assert answer.code in (400, 404), answer.body[:500]
    assert answer.status["message"]


# Requests that are none.

CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "rest",
    [
        f"{CHUNKED}ZZ\r\nabc\r\n",
        f"{CHUNKED}fffffffffffffffffff\r\nabc\r\n",
        f"Content-Length: 3\r\n{CHUNKED}0\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: 99999999999999999999999\r\n\r\n",
        "no colon here\r\n\r\n",
        "\x00\x01: x\r\n\r\n",
        f"X: {'a' * (2 << 20)}\r\n\r\n",
        "".join(f"X{n}: {'y' * 100}\r\n" for n in range(20_000)),
    ],
    ids=lambda rest: repr(rest)[:40],
)
def test_a_broken_request_gets_a_4xx_or_no_answer(wire: Wire, rest: str) -> None:
    head = f"POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {wire.token}\r\n"
    answer = wire.send((head + rest).encode("latin-1"))
    assert answer.code == 0 or 400 <= answer.code < 500, answer


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02 garbage\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"FOO / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_not_http_gets_a_4xx_or_no_answer(wire: Wire, data: bytes) -> None:
    assert wire.send(data).code in (0, 400)


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "OPTIONS", "PROPFIND", "HEAD"])
def test_a_method_that_is_not_spoken_is_refused(wire: Wire, method: str) -> None:
    assert wire.ask(method, MAPS).code == 405


@pytest.mark.parametrize(
    "query",
    [
        "limit=x",
        "continue=garbage",
        "labelSelector=a(((",
        "labelSelector=%00",
        "fieldSelector=..%3D%3D",
        "resourceVersion=abc",
        "resourceVersion=-1",
    ],
)
def test_a_query_that_makes_no_sense_is_refused(wire: Wire, query: str) -> None:
    answer = wire.ask("GET", f"{PODS}?{query}")
    assert answer.code == 400, answer.body[:500]
    assert answer.status["message"]


# Who gets in.


@pytest.mark.parametrize(
    "path",
    ["/", "/api", "/apis", "/openapi/v3", "/api/v1/secrets", PODS, f"{PODS}?watch=1", "/nowhere"],
)
@pytest.mark.parametrize("credentials", CREDENTIALS)
def test_nobody_without_the_token_gets_in(wire: Wire, path: str, credentials: str) -> None:
    shown = credentials.format(token=wire.token, short=wire.token[:-1])
    answer = wire.ask("GET", path, headers={"Authorization": shown})
    assert answer.code == 401
    assert answer.status["reason"] == "Unauthorized"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_health_and_version_are_for_everybody(wire: Wire, path: str) -> None:
    assert wire.ask("GET", path, headers={"Authorization": ""}).code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": "127.0.0.1.nip.io"},
        {"Host": "127.0.0.1@evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
    ],
    ids=str,
)
def test_a_page_from_elsewhere_is_refused_with_the_token_in_hand(
    wire: Wire, headers: dict[str, str]
) -> None:
    assert wire.ask("GET", "/api", headers=headers).code == 403


def test_a_thousand_idle_watches_and_as_many_silent_clients_disturb_nobody(wire: Wire) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < 4096:
        pytest.skip(f"this system allows {most} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, most))
    head = f"Host: localhost\r\nAuthorization: Bearer {wire.token}\r\n\r\n"
    watch = f"GET {MAPS}?watch=1 HTTP/1.1\r\n{head}".encode()
    idle: list[socket.socket] = []
    try:
        idle += [socket.create_connection(("127.0.0.1", wire.port)) for _ in range(200)]
        for _ in range(1000):
            watching = wire.connect()
            idle.append(watching)
            watching.sendall(watch)
        assert wire.post(MAPS, config_map("seen-by-all")).code == 201
        assert b"seen-by-all" in idle[-1].recv(65_536) + idle[-1].recv(65_536)
    finally:
        for connection in idle:
            connection.close()
        wire.ask("DELETE", f"{MAPS}/seen-by-all")


# The command line.

SUBMIT = ["submit", "mpi", "--image=i", "--workers=1"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "bomb.yaml").write_text(
        f"kind: Node\nmetadata: {{name: a}}\nspec:\n  {bomb().replace(chr(10), chr(10) + '  ')}"
    )
    (made / "deep.yaml").write_text("[" * 100_000)
    (made / "binary").write_bytes(b"\xff\xfe\x00garbage")
    (made / "items.yaml").write_text("items: 5")
    (made / "tricky.yaml").write_text("kind: Node\nmetadata: {name: ../x}")
    (made / "negative.yaml").write_text(
        "kind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: -1}}"
    )
    user = 'users: [{name: u, user: {token: "a\\nb"}}]'
    cluster = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]"
    context = "contexts: [{name: x, context: {cluster: c, user: u}}]"
    (made / "config").write_text("\n".join(["current-context: x", context, cluster, user]))
    return made


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([*SUBMIT, "--name=a\x01b", "c"], 2),
        ([*SUBMIT, "--name=a\x1b[31mb", "c"], 2),
        ([*SUBMIT, "--name=😀", "c"], 2),
        ([*SUBMIT, "--name=../x", "c"], 2),
        ([*SUBMIT, f"--name={'a' * 300}", "c"], 2),
        ([*SUBMIT, "--name=", "c"], 2),
        ([*SUBMIT, "--name=x", "--gpus=-1", "c"], 2),
        ([*SUBMIT, "--name=x", "--gpus=1.5", "c"], 2),
        ([*SUBMIT, "--name=x", "--workers=0", "c"], 2),
        ([*SUBMIT, "--name=x", "--cpu=-1", "c"], 2),
        ([*SUBMIT, "--name=x", "--memory=1e999", "c"], 2),
        ([*SUBMIT, "--name=x", "--env==1", "c"], 2),
        ([*SUBMIT, "--name=x", "--config-file=/dev/zero:/x", "c"], 2),
        ([*SUBMIT, "--name=x", "--config-file={files}:/x", "c"], 2),
        ([*SUBMIT, "--name=x", "--config-file={files}/binary:/x", "c"], 2),
        ([*SUBMIT, "--name=x", "-n", "../kube-system", "c"], 3),
        (["get", "../x"], 3),
        (["get", ""], 3),
        (["get", "\x1b[2J"], 3),
        (["get", "x", "--type=nope"], 2),
        (["delete", "../x"], 3),
        (["up", "--nodes", "{files}/bomb.yaml"], 2),
        (["up", "--nodes", "{files}/deep.yaml"], 2),
        (["up", "--nodes", "{files}/binary"], 2),
        (["up", "--nodes", "{files}/items.yaml"], 2),
        (["up", "--nodes", "{files}/tricky.yaml"], 2),
        (["up", "--nodes", "{files}/negative.yaml"], 2),
        (["up", "--nodes", "{files}"], 2),
        (["up", "--simulate", "1", "--port", "99999"], 2),
        (["list", "--config", "{files}/config"], 5),
        (["list", "--config", "{files}/deep.yaml"], 5),
        (["list", "--config", "{files}/binary"], 5),
        (["list", "--config", "{files}"], 5),
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_a_command_that_makes_no_sense_is_one_line_and_a_code(
    commands: Commands, files: Path, words: list[str], code: int
) -> None:
    line = [word.replace("{files}", str(files)) for word in words]
    done = subprocess.run(
        [commands.program("posse"), *line],
        env=commands.environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (code, b""), said
    assert len(said.splitlines()) == 1, said
    assert said.rstrip("\n").isprintable(), said
    assert "Traceback" not in said
    assert "internal error" not in said
