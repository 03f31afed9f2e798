"""Distributed training with a parameter server, in numpy alone.

Every process finds the others through TF_CONFIG and nothing else. The parameter server keeps the
weights; each worker draws its own data and sends the gradient of its batch. A step is taken when
every worker has sent its gradient, so that one missing worker stops all of them. Each worker prints
the loss as it falls; the server runs until it is stopped.

    TF_CONFIG=... python parameter_server.py
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time

import numpy as np

FEATURES = 20
BATCH = 256
STEPS = 200
RATE = 0.02
PATIENCE = 60.0  # seconds for the others to appear


def main() -> None:
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, task = config["cluster"], config["task"]
    role, index = task["type"], int(task["index"])
    say(f"{role} {index}: {len(cluster['ps'])} ps, {len(cluster['worker'])} workers")
    if role == "ps":
        serve(*address(cluster["ps"][index]), workers=len(cluster["worker"]))
    else:
        train(index, *address(cluster["ps"][0]))


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def say(words: str) -> None:
    print(words, flush=True)


def truth() -> np.ndarray:
    """The weights that everybody's data comes from and nobody is told."""
    return np.random.default_rng(0).normal(size=FEATURES)


# The parameter server.


class Weights:
    """Moved once a step, by the mean of all gradients."""

    def __init__(self, workers: int) -> None:
        self.current = np.zeros(FEATURES)
        self._gradients: list[np.ndarray] = []
        self._everybody = threading.Barrier(workers, action=self._step)

    def after(self, gradient: np.ndarray) -> np.ndarray:
        self._gradients.append(gradient)
        self._everybody.wait()
        return self.current

    def _step(self) -> None:
        self.current = self.current - RATE * np.mean(self._gradients, axis=0)
        self._gradients.clear()


def serve(host: str, port: int, workers: int) -> None:
    weights = Weights(workers)
    with socket.create_server((host, port)) as server:
        say(f"ps: serving {FEATURES} weights on {host}:{port}")
        while True:
            worker, _ = server.accept()
            threading.Thread(target=attend, args=(worker, weights), daemon=True).start()


def attend(worker: socket.socket, weights: Weights) -> None:
    """One worker: a gradient comes, the weights after the step go back."""
    with worker:
        while (gradient := receive(worker)) is not None:
            send(worker, weights.after(gradient))


# A worker.


def train(index: int, host: str, port: int) -> None:
    chance = np.random.default_rng(index + 1)
    secret = truth()
    with connect(host, port) as server:
        weights = exchange(server, np.zeros(FEATURES))
        for step in range(STEPS + 1):
            inputs = chance.normal(size=(BATCH, FEATURES))
            targets = inputs @ secret + chance.normal(scale=0.1, size=BATCH)
            error = inputs @ weights - targets
            if step % 20 == 0:
                say(f"worker {index}: step {step:3d}  loss {float(np.mean(error**2)):.4f}")
            weights = exchange(server, 2 * inputs.T @ error / BATCH)
    say(f"worker {index}: done")


def connect(host: str, port: int) -> socket.socket:
    """The server may start after us: gangs start together, processes a moment apart."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((host, port), timeout=10)
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"no parameter server at {host}:{port}: {error}")
            time.sleep(0.05)


def exchange(server: socket.socket, gradient: np.ndarray) -> np.ndarray:
    send(server, gradient)
    weights = receive(server)
    if weights is None:
        sys.exit("the parameter server went away")
    return weights


# Arrays over a socket: a length, then the numbers.


def send(to: socket.socket, array: np.ndarray) -> None:
    data = array.astype("<f8").tobytes()
    to.sendall(struct.pack("<I", len(data)) + data)


def receive(source: socket.socket) -> np.ndarray | None:
    head = read(source, 4)
    if head is None:
        return None
    body = read(source, struct.unpack("<I", head)[0])
    return None if body is None else np.frombuffer(body, "<f8").copy()


def read(source: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        chunk = source.recv(size - len(data))
        if not chunk:
            return None
        data += chunk
    return data


if __name__ == "__main__":
    main()
