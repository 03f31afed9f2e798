"""Nodes, namespaces, services, configuration, quotas, events, priorities and leases."""

from __future__ import annotations

STRUCTS = """
AttachedVolume: devicePath! name!
ClientIPConfig: timeoutSeconds:int
ConfigMap: apiVersion binaryData:{bytes} data:{string} immutable:bool kind metadata:ObjectMeta
ConfigMapNodeConfigSource: kubeletConfigKey! name! namespace! resourceVersion uid
ContainerImage: names:[string] sizeBytes:long
DaemonEndpoint: Port!:int
Event: action apiVersion count:int eventTime:microtime firstTimestamp:time
    involvedObject!:ObjectReference kind lastTimestamp:time message metadata!:ObjectMeta reason
    related:ObjectReference reportingComponent reportingInstance series:EventSeries
    source:EventSource type
EventSeries: count:int lastObservedTime:microtime
EventSource: component host
Lease: apiVersion kind metadata:ObjectMeta spec:LeaseSpec
LeaseSpec: acquireTime:microtime holderIdentity leaseDurationSeconds:int leaseTransitions:int
    preferredHolder renewTime:microtime strategy
LimitRange: apiVersion kind metadata:ObjectMeta spec:LimitRangeSpec
LimitRangeItem: default:{quantity} defaultRequest:{quantity} max:{quantity}
    maxLimitRequestRatio:{quantity} min:{quantity} type!
LimitRangeSpec: limits!:[LimitRangeItem]
LoadBalancerIngress: hostname ip ipMode ports:[PortStatus]
LoadBalancerStatus: ingress:[LoadBalancerIngress]
Namespace: apiVersion kind metadata:ObjectMeta spec:NamespaceSpec status:NamespaceStatus
NamespaceCondition: lastTransitionTime:time message reason status! type!
NamespaceSpec: finalizers:[string]
NamespaceStatus: conditions:[NamespaceCondition]@type phase
Node: apiVersion kind metadata:ObjectMeta spec:NodeSpec status:NodeStatus
NodeAddress: address! type!
NodeCondition: lastHeartbeatTime:time lastTransitionTime:time message reason status! type!
NodeConfigSource: configMap:ConfigMapNodeConfigSource
NodeConfigStatus: active:NodeConfigSource assigned:NodeConfigSource error
    lastKnownGood:NodeConfigSource
NodeDaemonEndpoints: kubeletEndpoint:DaemonEndpoint
NodeFeatures: supplementalGroupsPolicy:bool
NodeRuntimeHandler: features:NodeRuntimeHandlerFeatures name
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts:bool userNamespaces:bool
NodeSpec: configSource:NodeConfigSource externalID podCIDR podCIDRs:[string]@ providerID
    taints:[Taint] unschedulable:bool
NodeStatus: addresses:[NodeAddress]@type allocatable:{quantity} capacity:{quantity}
    conditions:[NodeCondition]@type config:NodeConfigStatus daemonEndpoints:NodeDaemonEndpoints
    declaredFeatures:[string] features:NodeFeatures images:[ContainerImage]
    nodeInfo:NodeSystemInfo phase runtimeHandlers:[NodeRuntimeHandler]
    volumesAttached:[AttachedVolume] volumesInUse:[string]
NodeSwapStatus: capacity:long
NodeSystemInfo: architecture! bootID! containerRuntimeVersion! kernelVersion! kubeProxyVersion!
    kubeletVersion! machineID! operatingSystem! osImage! swap:NodeSwapStatus systemUUID!
PortStatus: error port!:int protocol!
PriorityClass: apiVersion description globalDefault:bool kind metadata:ObjectMeta preemptionPolicy
    value:int
ResourceQuota: apiVersion kind metadata:ObjectMeta spec:ResourceQuotaSpec
    status:ResourceQuotaStatus
ResourceQuotaSpec: hard:{quantity} scopeSelector:ScopeSelector scopes:[string]
ResourceQuotaStatus: hard:{quantity} used:{quantity}
ScopeSelector: matchExpressions:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement: operator! scopeName! values:[string]
Secret: apiVersion data:{bytes} immutable:bool kind metadata:ObjectMeta stringData:{string} type
Service: apiVersion kind metadata:ObjectMeta spec:ServiceSpec status:ServiceStatus
ServiceAccount: apiVersion automountServiceAccountToken:bool
    imagePullSecrets:[LocalObjectReference] kind metadata:ObjectMeta
    secrets:[ObjectReference]@name
ServicePort: appProtocol name nodePort:int port!:int protocol targetPort:intstr
ServiceSpec: allocateLoadBalancerNodePorts:bool clusterIP clusterIPs:[string] externalIPs:[string]
    externalName externalTrafficPolicy healthCheckNodePort:int internalTrafficPolicy
    ipFamilies:[string] ipFamilyPolicy loadBalancerClass loadBalancerIP
    loadBalancerSourceRanges:[string] ports:[ServicePort]@port publishNotReadyAddresses:bool
    selector:{string} sessionAffinity sessionAffinityConfig:SessionAffinityConfig
    trafficDistribution type
ServiceStatus: conditions:[Condition]@type loadBalancer:LoadBalancerStatus
SessionAffinityConfig: clientIP:ClientIPConfig
Taint: effect! key! timeAdded:time value
"""
