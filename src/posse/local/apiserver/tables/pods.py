"""Pods in a table: what their containers' states come to in one word."""

from __future__ import annotations

from typing import Any, TypeAlias

from posse.local.apiserver.tables.durations import age, human_duration, moment
from posse.local.apiserver.tables.layout import Column, Layout
from posse.objects.raw import listing, mapping, mappings, number, text

Object: TypeAlias = dict[str, Any]


def _summary(pod: Object, now: float) -> Object:
    story = _Story(pod)
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    ips = mappings(status, "podIPs")
    return {
        "name": text(pod.get("metadata"), "name"),
        "ready": f"{story.ready}/{story.total}",
        "status": story.reason,
        "restarts": story.told_restarts(now),
        "age": age(mapping(pod, "metadata").get("creationTimestamp"), now),
        "ip": (text(ips[0], "ip") if ips else text(status, "podIP")) or "<none>",
        "node": text(spec, "nodeName") or "<none>",
        "nominated": text(status, "nominatedNodeName") or "<none>",
        "gates": _readiness_gates(spec, status),
    }


class _Story:
    """Follows the containers in the order the kubelet starts them."""

    def __init__(self, pod: Object) -> None:
        spec, status = mapping(pod, "spec"), mapping(pod, "status")
        self._status = status
        self._sidecars = frozenset(
            text(container, "name")
            for container in mappings(spec, "initContainers")
            if container.get("restartPolicy") == "Always"
        )
        self.total = len(listing(spec, "containers")) + len(self._sidecars)
        self.ready = 0
        self.restarts = 0
        self.last_restart: float | None = None
        self.reason = text(status, "reason") or text(status, "phase")
        if _condition(status, "PodScheduled").get("reason") == "SchedulingGated":
            self.reason = "SchedulingGated"
        initializing = self._initialize(len(listing(spec, "initContainers")))
        if not initializing or _condition(status, "Initialized").get("status") == "True":
            self._run()
        self._end(pod)

    def _initialize(self, count: int) -> bool:
        """Whether init containers still stand before the others; tells the first that does."""
        for index, container in enumerate(mappings(self._status, "initContainerStatuses")):
            sidecar = text(container, "name") in self._sidecars
            self._count_restarts(container)
            terminated = mapping(container, "state").get("terminated")
            if terminated and not number(terminated, "exitCode"):
                continue
            if sidecar and container.get("started") is True:
                self.ready += container.get("ready") is True
                continue
            waiting = text(mapping(container, "state", "waiting"), "reason")
            if terminated:
                self.reason = f"Init:{_ending(terminated)}"
            elif waiting and waiting != "PodInitializing":
                self.reason = f"Init:{waiting}"
            else:
                self.reason = f"Init:{index}/{count}"
            return True
        return False

    def _run(self) -> None:
        """From the last container to the first, so that the first one's trouble is told."""
        self._forget_init_restarts()
        running, error = False, ""
        for container in reversed(mappings(self._status, "containerStatuses")):
            self._count_restarts(container)
            state = mapping(container, "state")
            waiting = text(mapping(state, "waiting"), "reason")
            terminated = state.get("terminated")
            if waiting:
                self.reason = waiting
            elif terminated is not None:
                self.reason = _ending(terminated)
                if number(terminated, "exitCode"):
                    error = self.reason
            elif container.get("ready") is True and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and _condition(self._status, "Ready").get("status") == "True":
                self.reason = "Running"
            elif error:
                self.reason = error
            elif running:
                self.reason = "NotReady"

    def _forget_init_restarts(self) -> None:
        """Once the pod is initialized only sidecars' restarts still count."""
        self.restarts, self.last_restart = 0, None
        for container in mappings(self._status, "initContainerStatuses"):
            if text(container, "name") in self._sidecars:
                self._count_restarts(container)

    def _count_restarts(self, container: Object) -> None:
        self.restarts += number(container, "restartCount") or 0
        finished = moment(mapping(container, "lastState", "terminated").get("finishedAt"))
        if finished is not None:
            self.last_restart = max(finished, self.last_restart or finished)

    def _end(self, pod: Object) -> None:
        if not mapping(pod, "metadata").get("deletionTimestamp"):
            return
        if text(self._status, "reason") == "NodeLost":
            self.reason = "Unknown"
        elif text(self._status, "phase") not in ("Succeeded", "Failed"):
            self.reason = "Terminating"

    def told_restarts(self, now: float) -> str:
        if not self.restarts or self.last_restart is None:
            return str(self.restarts)
        return f"{self.restarts} ({human_duration(now - self.last_restart)} ago)"


def _ending(terminated: Object) -> str:
    if reason := text(terminated, "reason"):
        return reason
    if signal := number(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(terminated, 'exitCode') or 0}"


def _condition(status: Object, kind: str) -> Object:
    return next((one for one in mappings(status, "conditions") if one.get("type") == kind), {})


def _readiness_gates(spec: Object, status: Object) -> str:
    gates = mappings(spec, "readinessGates")
    if not gates:
        return "<none>"
    true = sum(
        _condition(status, text(gate, "conditionType")).get("status") == "True" for gate in gates
    )
    return f"{true}/{len(gates)}"


def _conditions(pod: Object) -> list[Object]:
    """Rows of finished pods are marked, so that clients can leave them out."""
    told = {
        "Succeeded": "The pod has completed successfully.",
        "Failed": "The pod failed.",
    }
    phase = text(mapping(pod, "status"), "phase")
    if phase not in told:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": told[phase]}]


def _from_summary(name: str, key: str, *, priority: int = 0, form: str = "") -> Column:
    return Column(name, lambda summary, now: summary[key], priority=priority, format=form)


PODS = Layout(
    columns=(
        _from_summary("Name", "name", form="name"),
        _from_summary("Ready", "ready"),
        _from_summary("Status", "status"),
        _from_summary("Restarts", "restarts"),
        _from_summary("Age", "age"),
        _from_summary("IP", "ip", priority=1),
        _from_summary("Node", "node", priority=1),
        _from_summary("Nominated Node", "nominated", priority=1),
        _from_summary("Readiness Gates", "gates", priority=1),
    ),
    summary=_summary,
    conditions=_conditions,
)
