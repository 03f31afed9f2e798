"""Jobs, Deployments and ReplicaSets."""

from __future__ import annotations

STRUCTS = """
Deployment: apiVersion kind metadata:ObjectMeta spec:DeploymentSpec status:DeploymentStatus
DeploymentCondition: lastTransitionTime:time lastUpdateTime:time message reason status! type!
DeploymentSpec: minReadySeconds:int paused:bool progressDeadlineSeconds:int replicas:int
    revisionHistoryLimit:int selector!:LabelSelector strategy:DeploymentStrategy~
    template!:PodTemplateSpec
DeploymentStatus: availableReplicas:int collisionCount:int conditions:[DeploymentCondition]@type
    observedGeneration:long readyReplicas:int replicas:int terminatingReplicas:int
    unavailableReplicas:int updatedReplicas:int
DeploymentStrategy: rollingUpdate:RollingUpdateDeployment type
Job: apiVersion kind metadata:ObjectMeta spec:JobSpec status:JobStatus
JobCondition: lastProbeTime:time lastTransitionTime:time message reason status! type!
JobSpec: activeDeadlineSeconds:long backoffLimit:int backoffLimitPerIndex:int completionMode
    completions:int managedBy manualSelector:bool maxFailedIndexes:int parallelism:int
    podFailurePolicy:PodFailurePolicy podReplacementPolicy selector:LabelSelector
    successPolicy:SuccessPolicy suspend:bool template!:PodTemplateSpec ttlSecondsAfterFinished:int
JobStatus: active:int completedIndexes completionTime:time conditions:[JobCondition]@type
    failed:int failedIndexes ready:int startTime:time succeeded:int terminating:int
    uncountedTerminatedPods:UncountedTerminatedPods
PodFailurePolicy: rules!:[PodFailurePolicyRule]
PodFailurePolicyOnExitCodesRequirement: containerName operator! values!:[int]
PodFailurePolicyOnPodConditionsPattern: status type!
PodFailurePolicyRule: action! onExitCodes:PodFailurePolicyOnExitCodesRequirement
    onPodConditions:[PodFailurePolicyOnPodConditionsPattern]
PodTemplateSpec: metadata:ObjectMeta spec:PodSpec
ReplicaSet: apiVersion kind metadata:ObjectMeta spec:ReplicaSetSpec status:ReplicaSetStatus
ReplicaSetCondition: lastTransitionTime:time message reason status! type!
ReplicaSetSpec: minReadySeconds:int replicas:int selector!:LabelSelector template:PodTemplateSpec
ReplicaSetStatus: availableReplicas:int conditions:[ReplicaSetCondition]@type
    fullyLabeledReplicas:int observedGeneration:long readyReplicas:int replicas!:int
    terminatingReplicas:int
RollingUpdateDeployment: maxSurge:intstr maxUnavailable:intstr
SuccessPolicy: rules!:[SuccessPolicyRule]
SuccessPolicyRule: succeededCount:int succeededIndexes
UncountedTerminatedPods: failed:[string] succeeded:[string]
"""
