"""The keys with which the launcher reaches the workers: one pair for each job."""

from __future__ import annotations

from base64 import b64encode

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from posse.controllers.jobs.labels import job_labels
from posse.controllers.runtime import Manifest
from posse.objects.jobs.mpi.spec import OPERATOR, ROOT_SSH_PATH, Job
from posse.world import World

VOLUME = "ssh-auth"
PRIVATE_KEY = "ssh-privatekey"
PUBLIC_KEY = "ssh-publickey"

# The order of the group of P-521: a private key is a number from 1 to one less than this.
_P521_ORDER = int(
    "01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa"
    "51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409",
    16,
)
# 64 bits more than the order has, so that the remainder favours no number.
_ENTROPY_BYTES = 74


def secret(job: Job) -> Manifest:
    """The Secret without its keys; `with_keys` fills them in when it is made."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": job.owned_metadata(
            job.secret_name, {"app": job.name} | job_labels(OPERATOR, job.name)
        ),
        "type": "kubernetes.io/ssh-auth",
    }


def with_keys(world: World, manifest: Manifest) -> Manifest:
    """A fresh ECDSA pair, from the world's chance alone."""
    number = int.from_bytes(world.entropy(_ENTROPY_BYTES), "big") % (_P521_ORDER - 1) + 1
    key = ec.derive_private_key(number, ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    data = {
        PRIVATE_KEY: b64encode(private).decode(),
        PUBLIC_KEY: b64encode(public + b"\n").decode(),
    }
    return manifest | {"data": data}


def volume(job: Job) -> Manifest:
    source: Manifest = {
        "secretName": job.secret_name,
        "items": [
            {"key": PRIVATE_KEY, "path": "id_rsa"},
            {"key": PUBLIC_KEY, "path": "id_rsa.pub"},
            {"key": PUBLIC_KEY, "path": "authorized_keys"},
        ],
    }
    if job.ssh_path == ROOT_SSH_PATH:
        # sshd refuses root's keys when others may read them; elsewhere the pod's own user must.
        source["defaultMode"] = 0o600
    return {"name": VOLUME, "secret": source}
