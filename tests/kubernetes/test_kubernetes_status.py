"""What `status` sees of a real cluster, and what a bundle holds of it."""

from __future__ import annotations

import msgspec

from posse.client.bundling import Bundle, gather
from posse.client.overview import look
from posse.kube import connect
from posse.kube.impersonating import Impersonation
from posse.objects import kinds
from posse.world import World
from tests.cluster.riding import cluster, mpi, training
from tests.cluster.test_cluster_status import (  # noqa: F401 - run here once more
    test_a_bundle_has_no_value_of_any_environment_and_no_secret,
    test_a_scheduler_that_is_gone_is_noticed_when_its_lease_has_run_out,
    test_leaders_nodes_and_waiting_gangs_are_seen_through_the_api_alone,
)
from tests.kubernetes.plane import Plane


async def test_who_may_see_one_namespace_sees_it_and_is_told_what_is_hidden(plane: Plane) -> None:
    async with cluster(1, gpus=2) as running:
        binding = {
            "metadata": {"name": "ana"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "edit",
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ana"}],
        }
        await running.connection.create(kinds.ROLE_BINDING, binding, running.namespace)
        await training(running).submit(mpi("large", workers=2))
        settings = msgspec.structs.replace(plane.settings(), acting_as=Impersonation(user="ana"))
        connection = connect(settings, World.real())
        try:

            async def told() -> bool:
                return "pods" in " ".join((await look(connection, running.namespace)).hidden)

            await running.until(told, "she may look at all")
            seen = await look(connection, running.namespace)
            bundle = Bundle()
            await gather(bundle, connection, running.namespace)
        finally:
            await connection.close()
        assert seen.problems == ()
        assert {"nodes", "leases", f"pods outside namespace {running.namespace}"} <= set(
            seen.hidden
        )
        assert "pods.json" in bundle.files
        assert "nodes.json" in bundle.missing
