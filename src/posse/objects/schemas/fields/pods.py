"""Pods: containers, probes, security, affinity, and what the kubelet reports."""

from __future__ import annotations

STRUCTS = """
Affinity: nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity
AppArmorProfile: localhostProfile type!
Capabilities: add:[string] drop:[string]
ConfigMapEnvSource: name optional:bool
ConfigMapKeySelector: key! name optional:bool
Container: args:[string] command:[string] env:[EnvVar]@name envFrom:[EnvFromSource] image
    imagePullPolicy lifecycle:Lifecycle livenessProbe:Probe name!
    ports:[ContainerPort]@containerPort readinessProbe:Probe resizePolicy:[ContainerResizePolicy]
    resources:ResourceRequirements restartPolicy restartPolicyRules:[ContainerRestartRule]
    securityContext:SecurityContext startupProbe:Probe stdin:bool stdinOnce:bool
    terminationMessagePath terminationMessagePolicy tty:bool
    volumeDevices:[VolumeDevice]@devicePath volumeMounts:[VolumeMount]@mountPath workingDir
ContainerExtendedResourceRequest: containerName! requestName! resourceName!
ContainerPort: containerPort!:int hostIP hostPort:int name protocol
ContainerResizePolicy: resourceName! restartPolicy!
ContainerRestartRule: action! exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator! values:[int]
ContainerState: running:ContainerStateRunning terminated:ContainerStateTerminated
    waiting:ContainerStateWaiting
ContainerStateRunning: startedAt:time
ContainerStateTerminated: containerID exitCode!:int finishedAt:time message reason signal:int
    startedAt:time
ContainerStateWaiting: message reason
ContainerStatus: allocatedResources:{quantity} allocatedResourcesStatus:[ResourceStatus]@name
    containerID image! imageID! lastState:ContainerState name! ready!:bool
    resources:ResourceRequirements restartCount!:int started:bool state:ContainerState stopSignal
    user:ContainerUser volumeMounts:[VolumeMountStatus]@mountPath
ContainerUser: linux:LinuxContainerUser
EnvFromSource: configMapRef:ConfigMapEnvSource prefix secretRef:SecretEnvSource
EnvVar: name! value valueFrom:EnvVarSource
EnvVarSource: configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector
    fileKeyRef:FileKeySelector resourceFieldRef:ResourceFieldSelector
    secretKeyRef:SecretKeySelector
EphemeralContainer: args:[string] command:[string] env:[EnvVar]@name envFrom:[EnvFromSource] image
    imagePullPolicy lifecycle:Lifecycle livenessProbe:Probe name!
    ports:[ContainerPort]@containerPort readinessProbe:Probe resizePolicy:[ContainerResizePolicy]
    resources:ResourceRequirements restartPolicy restartPolicyRules:[ContainerRestartRule]
    securityContext:SecurityContext startupProbe:Probe stdin:bool stdinOnce:bool
    targetContainerName terminationMessagePath terminationMessagePolicy tty:bool
    volumeDevices:[VolumeDevice]@devicePath volumeMounts:[VolumeMount]@mountPath workingDir
ExecAction: command:[string]
FileKeySelector: key! optional:bool path! volumeName!
GRPCAction: port!:int service
HTTPGetAction: host httpHeaders:[HTTPHeader] path port!:intstr scheme
HTTPHeader: name! value!
HostAlias: hostnames:[string] ip!
HostIP: ip!
ImageVolumeStatus: imageRef!
Lifecycle: postStart:LifecycleHandler preStop:LifecycleHandler stopSignal
LifecycleHandler: exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction
    tcpSocket:TCPSocketAction
LinuxContainerUser: gid!:long supplementalGroups:[long] uid!:long
LocalObjectReference: name
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
    requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
NodeAllocatableResourceClaimStatus: containers:[string] resourceClaimName! resources!:{quantity}
NodeSelector: nodeSelectorTerms!:[NodeSelectorTerm]
NodeSelectorRequirement: key! operator! values:[string]
NodeSelectorTerm: matchExpressions:[NodeSelectorRequirement] matchFields:[NodeSelectorRequirement]
ObjectFieldSelector: apiVersion fieldPath!
ObjectReference: apiVersion fieldPath kind name namespace resourceVersion uid
Pod: apiVersion kind metadata:ObjectMeta spec:PodSpec status:PodStatus
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
PodAffinityTerm: labelSelector:LabelSelector matchLabelKeys:[string] mismatchLabelKeys:[string]
    namespaceSelector:LabelSelector namespaces:[string] topologyKey!
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
    requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
PodCondition: lastProbeTime:time lastTransitionTime:time message observedGeneration:long reason
    status! type!
PodDNSConfig: nameservers:[string] options:[PodDNSConfigOption] searches:[string]
PodDNSConfigOption: name value
PodExtendedResourceClaimStatus: requestMappings!:[ContainerExtendedResourceRequest]
    resourceClaimName!
PodIP: ip!
PodOS: name!
PodReadinessGate: conditionType!
PodResourceClaim: name! resourceClaimName resourceClaimTemplateName
PodResourceClaimStatus: name! resourceClaimName
PodSchedulingGate: name!
PodSchedulingGroup: podGroupName
PodSecurityContext: appArmorProfile:AppArmorProfile fsGroup:long fsGroupChangePolicy
    runAsGroup:long runAsNonRoot:bool runAsUser:long seLinuxChangePolicy
    seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile supplementalGroups:[long]
    supplementalGroupsPolicy sysctls:[Sysctl] windowsOptions:WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds:long affinity:Affinity automountServiceAccountToken:bool
    containers!:[Container]@name dnsConfig:PodDNSConfig dnsPolicy enableServiceLinks:bool
    ephemeralContainers:[EphemeralContainer]@name hostAliases:[HostAlias]@ip hostIPC:bool
    hostNetwork:bool hostPID:bool hostUsers:bool hostname hostnameOverride
    imagePullSecrets:[LocalObjectReference]@name initContainers:[Container]@name nodeName
    nodeSelector:{string} os:PodOS overhead:{quantity} preemptionPolicy priority:int
    priorityClassName readinessGates:[PodReadinessGate] resourceClaims:[PodResourceClaim]@name~
    resources:ResourceRequirements restartPolicy runtimeClassName schedulerName
    schedulingGates:[PodSchedulingGate]@name schedulingGroup:PodSchedulingGroup
    securityContext:PodSecurityContext serviceAccount serviceAccountName setHostnameAsFQDN:bool
    shareProcessNamespace:bool subdomain terminationGracePeriodSeconds:long
    tolerations:[Toleration] topologySpreadConstraints:[TopologySpreadConstraint]@topologyKey
    volumes:[Volume]@name~ workloadRef:WorkloadReference
PodStatus: allocatedResources:{quantity} conditions:[PodCondition]@type
    containerStatuses:[ContainerStatus] ephemeralContainerStatuses:[ContainerStatus]
    extendedResourceClaimStatus:PodExtendedResourceClaimStatus hostIP hostIPs:[HostIP]@ip
    initContainerStatuses:[ContainerStatus] message
    nodeAllocatableResourceClaimStatuses:[NodeAllocatableResourceClaimStatus] nominatedNodeName
    observedGeneration:long phase podIP podIPs:[PodIP]@ip qosClass reason resize
    resourceClaimStatuses:[PodResourceClaimStatus]@name~ resources:ResourceRequirements
    startTime:time
PreferredSchedulingTerm: preference!:NodeSelectorTerm weight!:int
Probe: exec:ExecAction failureThreshold:int grpc:GRPCAction httpGet:HTTPGetAction
    initialDelaySeconds:int periodSeconds:int successThreshold:int tcpSocket:TCPSocketAction
    terminationGracePeriodSeconds:long timeoutSeconds:int
ResourceClaim: name! request
ResourceFieldSelector: containerName divisor:quantity resource!
ResourceHealth: health message resourceID!
ResourceRequirements: claims:[ResourceClaim] limits:{quantity} requests:{quantity}
ResourceStatus: name! resources:[ResourceHealth]
SELinuxOptions: level role type user
SeccompProfile: localhostProfile type!
SecretEnvSource: name optional:bool
SecretKeySelector: key! name optional:bool
SecurityContext: allowPrivilegeEscalation:bool appArmorProfile:AppArmorProfile
    capabilities:Capabilities privileged:bool procMount readOnlyRootFilesystem:bool
    runAsGroup:long runAsNonRoot:bool runAsUser:long seLinuxOptions:SELinuxOptions
    seccompProfile:SeccompProfile windowsOptions:WindowsSecurityContextOptions
SleepAction: seconds!:long
Sysctl: name! value!
TCPSocketAction: host port!:intstr
Toleration: effect key operator tolerationSeconds:long value
TopologySpreadConstraint: labelSelector:LabelSelector matchLabelKeys:[string] maxSkew!:int
    minDomains:int nodeAffinityPolicy nodeTaintsPolicy topologyKey! whenUnsatisfiable!
VolumeDevice: devicePath! name!
VolumeMount: mountPath! mountPropagation name! readOnly:bool recursiveReadOnly subPath subPathExpr
VolumeMountStatus: mountPath! name! readOnly:bool recursiveReadOnly volumeStatus:VolumeStatus
VolumeStatus: image:ImageVolumeStatus
WeightedPodAffinityTerm: podAffinityTerm!:PodAffinityTerm weight!:int
WindowsSecurityContextOptions: gmsaCredentialSpec gmsaCredentialSpecName hostProcess:bool
    runAsUserName
WorkloadReference: name! podGroup! podGroupReplicaKey
"""
