"""Which kinds exist and where the API serves them."""

from __future__ import annotations

from urllib.parse import quote

import msgspec


class Kind(msgspec.Struct, frozen=True):
    """One kind of object in one version: enough to build its URLs and its discovery entry."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def qualified(self) -> str:
        """The name people see in messages: `pods`, `mpijobs.kubeflow.org`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """The URL path of the collection, of one object, or of a part of it.

        Names are quoted: a name with a slash in it can never reach another object.
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


NAMESPACE = Kind("", "v1", "Namespace", "namespaces", False, ("ns",))
NODE = Kind("", "v1", "Node", "nodes", False, ("no",))
POD = Kind("", "v1", "Pod", "pods", True, ("po",), ("all",))
SERVICE = Kind("", "v1", "Service", "services", True, ("svc",), ("all",))
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", True, ("cm",))
SECRET = Kind("", "v1", "Secret", "secrets")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts", True, ("sa",))
EVENT = Kind("", "v1", "Event", "events", True, ("ev",))
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas", True, ("quota",))
LIMIT_RANGE = Kind("", "v1", "LimitRange", "limitranges", True, ("limits",))
ENDPOINTS = Kind("", "v1", "Endpoints", "endpoints", True, ("ep",))
ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
PERSISTENT_VOLUME = Kind("", "v1", "PersistentVolume", "persistentvolumes", False, ("pv",))
PERSISTENT_VOLUME_CLAIM = Kind(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, ("pvc",)
)
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, ("sc",))
CSI_NODE = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", False)
CSI_DRIVER = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", False)
CSI_STORAGE_CAPACITY = Kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities")
JOB = Kind("batch", "v1", "Job", "jobs", True, (), ("all",))
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments", True, ("deploy",), ("all",))
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets", True, ("rs",), ("all",))
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, ("pc",))
POD_DISRUPTION_BUDGET = Kind(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, ("pdb",)
)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
ROLE = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False)
CLUSTER_ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", False
)
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    False,
    ("crd", "crds"),
)

_WEBHOOKS = "admissionregistration.k8s.io"
MUTATING_WEBHOOK_CONFIGURATION = Kind(
    _WEBHOOKS, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False
)
VALIDATING_WEBHOOK_CONFIGURATION = Kind(
    _WEBHOOKS, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)

# Answered, never kept.
SELF_SUBJECT_ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False
)
SELF_SUBJECT_RULES_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False
)
SUBJECT_ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False
)
LOCAL_SUBJECT_ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews"
)
SELF_SUBJECT_REVIEW = Kind(
    "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False
)
TOKEN_REVIEW = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", False)

# Written to a part of an object.
BINDING = Kind("", "v1", "Binding", "bindings")
EVICTION = Kind("policy", "v1", "Eviction", "evictions")
SCALE = Kind("autoscaling", "v1", "Scale", "scales")

# Kinds that come with Posse's CRDs, in `deploy/crds/`.
POD_GROUP = Kind(
    "scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", True, ("pg", "podgroup-v1beta1")
)
QUEUE = Kind("scheduling.volcano.sh", "v1beta1", "Queue", "queues", False, ("q", "queue-v1beta1"))
# Drawn by Volcano's tools; used where it is served.
HYPER_NODE = Kind("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", False, ("hn",))
MPI_JOB = Kind("kubeflow.org", "v2beta1", "MPIJob", "mpijobs", True, ("mj", "mpij"))
TF_JOB = Kind("kubeflow.org", "v1", "TFJob", "tfjobs")

# What kube-batch called a PodGroup, so that manifests of its time apply.
INCUBATOR_POD_GROUP = Kind("scheduling.incubator.k8s.io", "v1alpha1", "PodGroup", "podgroups")
SIGS_POD_GROUP = Kind("scheduling.sigs.dev", "v1alpha2", "PodGroup", "podgroups")
# What the scheduler-plugins call one.
COSCHEDULING_POD_GROUP = Kind(
    "scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", True, ("pg", "pgs")
)
POD_GROUPS: tuple[Kind, ...] = (
    POD_GROUP,
    INCUBATOR_POD_GROUP,
    SIGS_POD_GROUP,
    COSCHEDULING_POD_GROUP,
)
# What Kubernetes 1.35 had groups in.
WORKLOAD = Kind(PRIORITY_CLASS.group, "v1alpha1", "Workload", "workloads")
# Kubernetes' own, the newest version first: a server has some of them, or none.
NATIVE_POD_GROUPS: tuple[Kind, ...] = tuple(
    Kind(PRIORITY_CLASS.group, version, "PodGroup", "podgroups")
    for version in ("v1beta1", "v1alpha3", "v1alpha2")
)

BUILT_IN: tuple[Kind, ...] = (
    NAMESPACE,
    NODE,
    POD,
    SERVICE,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    EVENT,
    RESOURCE_QUOTA,
    LIMIT_RANGE,
    ENDPOINTS,
    ENDPOINT_SLICE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    JOB,
    DEPLOYMENT,
    REPLICA_SET,
    PRIORITY_CLASS,
    POD_DISRUPTION_BUDGET,
    LEASE,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
)

REVIEWS: tuple[Kind, ...] = (
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_REVIEW,
    TOKEN_REVIEW,
)
