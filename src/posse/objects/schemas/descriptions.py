"""What fields mean, in a sentence each: `kubectl explain` prints these.

A key is a struct, or one of its fields.
"""

from __future__ import annotations

_TEXT = """
ObjectMeta: What every object has: its name, its place, its labels, and what the server knows of it.
ObjectMeta.name: The name of the object, unique among its kind in its namespace.
ObjectMeta.generateName: A prefix; the server adds characters to make a name that is free.
ObjectMeta.namespace: The namespace the object lives in.
ObjectMeta.labels: Keys and values by which objects are found and selected.
ObjectMeta.annotations: Keys and values for people and programs; nothing selects by them.
ObjectMeta.uid: The identity of this very object; one made later under its name has another.
ObjectMeta.resourceVersion: Changes with every write; send it back to write only over what was read.
ObjectMeta.generation: Counts the changes of what the object asks for.
ObjectMeta.creationTimestamp: When the server made the object.
ObjectMeta.deletionTimestamp: From when on the object is to be gone; set by a deletion.
ObjectMeta.deletionGracePeriodSeconds: How long it may take to end before it is made to.
ObjectMeta.finalizers: Who must still act before the deleted object may go.
ObjectMeta.ownerReferences: The objects this one goes with when they are deleted.
ObjectMeta.managedFields: Which program last wrote which field.
OwnerReference: An owner of an object, named so that no other of its name is meant.
OwnerReference.controller: Whether this owner is the one that manages the object.
OwnerReference.blockOwnerDeletion: Whether a foreground deletion of the owner waits for the object.
LabelSelector: Which objects are meant, by their labels; all the conditions must hold.
LabelSelector.matchLabels: Labels that must be there with these values.
LabelSelector.matchExpressions: Conditions on single labels.
Pod: Containers that run together on one node.
Pod.metadata: The pod's name, labels and so on.
Pod.spec: What is to run, and where it may.
Pod.status: What became of it.
PodSpec: What is to run, and where it may.
PodSpec.containers: The containers of the pod; at least one.
PodSpec.initContainers: Containers that run one after another before the others start.
PodSpec.volumes: Directories and files that containers can mount.
PodSpec.restartPolicy: When ended containers are started again: Always, OnFailure or Never.
PodSpec.terminationGracePeriodSeconds: How long containers may take to end when the pod is deleted.
PodSpec.activeDeadlineSeconds: How long the pod may be active before it is failed.
PodSpec.nodeName: The node the pod runs on; a scheduler sets it by a binding.
PodSpec.nodeSelector: Labels that a node must have to run the pod.
PodSpec.schedulerName: The scheduler that finds a node for the pod.
PodSpec.schedulingGates: Names that must all be taken away before the pod is scheduled.
PodSpec.affinity: Which nodes, and which other pods' company, the pod seeks or avoids.
PodSpec.tolerations: The taints of nodes that do not keep this pod away.
PodSpec.priorityClassName: The PriorityClass from which the pod has its priority.
PodSpec.priority: The higher, the earlier it is scheduled; taken from the PriorityClass.
PodSpec.preemptionPolicy: Whether pods of lower priority may be evicted for this one.
PodSpec.hostname: The name of the pod's host; its own name if not given.
PodSpec.subdomain: The service under which the hostname can be found.
PodSpec.serviceAccountName: The account the pod acts as.
PodSpec.hostNetwork: Whether the pod uses the node's own network.
PodSpec.securityContext: As whom the containers run, where they do not say so themselves.
PodSpec.resources: What the pod as a whole requests and may use.
PodStatus.phase: Pending, Running, Succeeded, Failed or Unknown.
PodStatus.conditions: What is true of the pod now, and since when.
PodStatus.podIP: The address of the pod.
PodStatus.hostIP: The address of its node.
PodStatus.reason: One word for why the pod is as it is.
PodStatus.message: The same as a sentence.
PodStatus.startTime: When its node took the pod.
PodStatus.containerStatuses: How each container is doing.
PodStatus.qosClass: How well its resources are guaranteed: Guaranteed, Burstable or BestEffort.
Container: One program of a pod, with its environment.
Container.name: The container's name, a DNS label, unique in the pod.
Container.image: The image the container is made of.
Container.command: The program and its first arguments, in place of the image's entrypoint.
Container.args: Arguments for the command or the entrypoint; $(NAME) stands for a variable.
Container.workingDir: The directory in which the program starts.
Container.env: Variables of the program's environment.
Container.envFrom: ConfigMaps and Secrets of which every key becomes a variable.
Container.ports: Ports the program listens on; for information, and for names to refer to.
Container.resources: What the container requests and may use.
Container.volumeMounts: Where the pod's volumes are mounted in the container.
Container.livenessProbe: A check; the container is restarted when it keeps failing.
Container.readinessProbe: A check; the pod is led to by services only while it succeeds.
Container.startupProbe: A check; the other two begin when it has succeeded once.
Container.lifecycle: What to do after the container's start and before its end.
Container.imagePullPolicy: When the image is fetched: Always, IfNotPresent or Never.
Container.restartPolicy: Always makes an init container one that runs beside the others.
Container.securityContext: As whom the container runs and what it may do.
Container.terminationMessagePath: The file whose content becomes the message of the ended container.
Container.tty: Whether the program gets a terminal.
Container.stdin: Whether the program's input stays open.
EnvVar.name: The name of the variable.
EnvVar.value: Its value; $(NAME) stands for a variable defined before.
EnvVar.valueFrom: Where the value comes from, in place of `value`.
ResourceRequirements.requests: What is set aside for it; scheduling goes by this.
ResourceRequirements.limits: What it may use at most; requests not given are taken from here.
VolumeMount.name: The volume that is mounted.
VolumeMount.mountPath: Where in the container it appears.
VolumeMount.subPath: A path in the volume to mount instead of its root.
VolumeMount.readOnly: Whether nothing can be written to it.
Toleration.key: The taint's key; none tolerates every key.
Toleration.operator: Exists, or Equal to compare the value as well.
Toleration.effect: The effect to tolerate; none tolerates all.
Service: A name and address that lead to pods.
ServiceSpec.selector: The labels of the pods that the service leads to.
ServiceSpec.ports: The ports of the service, and those of the pods behind them.
ServiceSpec.type: How it is reached: ClusterIP, NodePort, LoadBalancer or ExternalName.
ServiceSpec.clusterIP: Its address in the cluster; None for a service that is a name only.
Deployment: Pods of one template, kept in number and changed step by step.
DeploymentSpec.replicas: How many pods are wanted; 1 if not given.
DeploymentSpec.selector: The labels by which the Deployment knows its pods.
DeploymentSpec.template: What its pods are made from.
DeploymentSpec.strategy: How pods of an old template are replaced.
ReplicaSet: As many pods of one template as asked for.
ReplicaSetSpec.replicas: How many pods are wanted; 1 if not given.
Job: Pods that run until enough of them have succeeded.
JobSpec.template: What its pods are made from.
JobSpec.completions: How many pods must succeed.
JobSpec.parallelism: How many may run at a time.
JobSpec.backoffLimit: How many failures make the Job fail.
JobSpec.activeDeadlineSeconds: How long the Job may take before it is failed.
JobSpec.ttlSecondsAfterFinished: How long the finished Job is kept.
JobSpec.suspend: Whether its pods are held back.
Node: A machine that runs pods.
NodeSpec.unschedulable: Whether new pods are kept away (`kubectl cordon`).
NodeSpec.taints: What keeps away, or drives off, pods that do not tolerate it.
NodeStatus.capacity: What the machine has.
NodeStatus.allocatable: What of it pods can have.
NodeStatus.conditions: How the node is doing, and since when.
Namespace: A place for names: objects in different ones do not meet.
ConfigMap: Configuration as keys and values.
ConfigMap.data: Keys with values that are text.
ConfigMap.binaryData: Keys with values that are bytes, in base64.
ConfigMap.immutable: Whether the data can be changed no more.
Secret: The same for what not everybody may read.
Secret.data: Keys with values in base64.
Secret.stringData: Keys with values as text; written only, they end up in `data`.
Secret.type: What the secret is for.
ServiceAccount: An identity for pods.
PodDisruptionBudget: How many pods of a kind may be ended on purpose at a time.
PodDisruptionBudgetSpec.selector: The pods it speaks for; without one, none.
PodDisruptionBudgetSpec.minAvailable: How many of them, or which part, must stay healthy.
PodDisruptionBudgetSpec.maxUnavailable: How many may be missing; in place of `minAvailable`.
PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy: AlwaysAllow lets unhealthy pods go at any time.
PodDisruptionBudgetStatus.disruptionsAllowed: How many more may be ended now.
PriorityClass: A name for a priority.
PriorityClass.value: The priority; higher ones come first.
PriorityClass.globalDefault: Whether it is that of pods which name none.
ResourceQuota: How much a namespace may use in all.
LimitRange: Bounds and defaults for what single pods and containers ask for.
PersistentVolume: Storage that outlives pods.
PersistentVolumeClaim: A request for such storage.
StorageClass: A kind of storage: who makes its volumes, and when.
StorageClass.provisioner: Who makes its volumes; kubernetes.io/no-provisioner says nobody.
StorageClass.volumeBindingMode: Immediate, or WaitForFirstConsumer to choose with the pod's node.
StorageClass.allowedTopologies: Where its volumes can be made.
CSIDriver: A driver of storage, and what it can do.
CSINode: Which drivers a node has, and how much each can attach there.
CSIStorageCapacity: How much room is left for volumes of a class in one place.
Endpoints: The addresses a service leads to.
EndpointSlice: The same in parts, with the state of each address.
Lease: Who holds something, and until when.
Event: Something that happened to an object.
"""

DESCRIPTIONS: dict[str, str] = dict(line.split(": ", 1) for line in _TEXT.strip().splitlines())
