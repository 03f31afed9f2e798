"""Nodes, namespaces, services, configuration, quotas, events, priorities and leases."""

from __future__ import annotations

STRUCTS = """
AttachedVolume: devicePath#2! name#1!
ClientIPConfig: timeoutSeconds#1:int?
ConfigMap: apiVersion binaryData#3:{bytes} data#2:{string} immutable#4:bool? kind
    metadata#1:ObjectMeta
ConfigMapNodeConfigSource: kubeletConfigKey#5! name#2! namespace#1! resourceVersion#4 uid#3
ContainerImage: names#1:[string]= sizeBytes#2:long
DaemonEndpoint: Port#1!:int
Event: action#12 apiVersion count#8:int eventTime#10:microtime= firstTimestamp#6:time=
    involvedObject#2!:ObjectReference kind lastTimestamp#7:time= message#4 metadata#1!:ObjectMeta
    reason#3 related#13:ObjectReference reportingComponent#14= reportingInstance#15=
    series#11:EventSeries source#5:EventSource= type#9
EventSeries: count#1:int lastObservedTime#2:microtime
EventSource: component#1 host#2
Lease: apiVersion kind metadata#1:ObjectMeta spec#2:LeaseSpec=
LeaseSpec: acquireTime#3:microtime holderIdentity#1? leaseDurationSeconds#2:int?
    leaseTransitions#5:int? preferredHolder#7? renewTime#4:microtime strategy#6?
LimitRange: apiVersion kind metadata#1:ObjectMeta spec#2:LimitRangeSpec
LimitRangeItem: default#4:{quantity} defaultRequest#5:{quantity} max#2:{quantity}
    maxLimitRequestRatio#6:{quantity} min#3:{quantity} type#1!
LimitRangeSpec: limits#1!:[LimitRangeItem]=
LoadBalancerIngress: hostname#2 ip#1 ipMode#3? ports#4:[PortStatus]
LoadBalancerStatus: ingress#1:[LoadBalancerIngress]
Namespace: apiVersion kind metadata#1:ObjectMeta spec#2:NamespaceSpec status#3:NamespaceStatus
NamespaceCondition: lastTransitionTime#4:time= message#6 reason#5 status#2! type#1!
NamespaceSpec: finalizers#1:[string]
NamespaceStatus: conditions#2:[NamespaceCondition]@type phase#1
Node: apiVersion kind metadata#1:ObjectMeta spec#2:NodeSpec status#3:NodeStatus
NodeAddress: address#2! type#1!
NodeCondition: lastHeartbeatTime#3:time= lastTransitionTime#4:time= message#6 reason#5 status#2!
    type#1!
NodeConfigSource: configMap#2:ConfigMapNodeConfigSource
NodeConfigStatus: active#2:NodeConfigSource assigned#1:NodeConfigSource error#4
    lastKnownGood#3:NodeConfigSource
NodeDaemonEndpoints: kubeletEndpoint#1:DaemonEndpoint
NodeFeatures: supplementalGroupsPolicy#1:bool?
NodeRuntimeHandler: features#2:NodeRuntimeHandlerFeatures name#1
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts#1:bool? userNamespaces#2:bool?
NodeSpec: configSource#6:NodeConfigSource externalID#2 podCIDR#1 podCIDRs#7:[string]@ providerID#3
    taints#5:[Taint] unschedulable#4:bool
NodeStatus: addresses#5:[NodeAddress]@type allocatable#2:{quantity} capacity#1:{quantity}
    conditions#4:[NodeCondition]@type config#11:NodeConfigStatus
    daemonEndpoints#6:NodeDaemonEndpoints declaredFeatures#14:[string] features#13:NodeFeatures
    images#8:[ContainerImage] nodeInfo#7:NodeSystemInfo phase#3
    runtimeHandlers#12:[NodeRuntimeHandler] volumesAttached#10:[AttachedVolume]
    volumesInUse#9:[string]
NodeSwapStatus: capacity#1:long?
NodeSystemInfo: architecture#10! bootID#3! containerRuntimeVersion#6! kernelVersion#4!
    kubeProxyVersion#8! kubeletVersion#7! machineID#1! operatingSystem#9! osImage#5!
    swap#11:NodeSwapStatus systemUUID#2!
PortStatus: error#3? port#1!:int protocol#2!
PriorityClass: apiVersion description#4 globalDefault#3:bool kind metadata#1:ObjectMeta
    preemptionPolicy#5 value#2:int
ResourceQuota: apiVersion kind metadata#1:ObjectMeta spec#2:ResourceQuotaSpec
    status#3:ResourceQuotaStatus
ResourceQuotaSpec: hard#1:{quantity} scopeSelector#3:ScopeSelector scopes#2:[string]
ResourceQuotaStatus: hard#1:{quantity} used#2:{quantity}
ScopeSelector: matchExpressions#1:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement: operator#2! scopeName#1! values#3:[string]
Secret: apiVersion data#2:{bytes} immutable#5:bool? kind metadata#1:ObjectMeta stringData#4:{string}
    type#3
Service: apiVersion kind metadata#1:ObjectMeta spec#2:ServiceSpec status#3:ServiceStatus
ServiceAccount: apiVersion automountServiceAccountToken#4:bool?
    imagePullSecrets#3:[LocalObjectReference] kind metadata#1:ObjectMeta
    secrets#2:[ObjectReference]@name
ServicePort: appProtocol#6? name#1 nodePort#5:int port#3!:int protocol#2 targetPort#4:intstr
ServiceSpec: allocateLoadBalancerNodePorts#20:bool? clusterIP#3 clusterIPs#18:[string]
    externalIPs#5:[string] externalName#10 externalTrafficPolicy#11 healthCheckNodePort#12:int
    internalTrafficPolicy#22? ipFamilies#19:[string] ipFamilyPolicy#17? loadBalancerClass#21?
    loadBalancerIP#8 loadBalancerSourceRanges#9:[string] ports#1:[ServicePort]@port
    publishNotReadyAddresses#13:bool selector#2:{string} sessionAffinity#7
    sessionAffinityConfig#14:SessionAffinityConfig trafficDistribution#23? type#4
ServiceStatus: conditions#2:[Condition]@type loadBalancer#1:LoadBalancerStatus=
SessionAffinityConfig: clientIP#1:ClientIPConfig
Taint: effect#3! key#1! timeAdded#4:time value#2
"""
