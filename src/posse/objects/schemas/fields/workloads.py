"""Jobs, Deployments and ReplicaSets."""

from __future__ import annotations

STRUCTS = """
Deployment: apiVersion kind metadata#1:ObjectMeta spec#2:DeploymentSpec status#3:DeploymentStatus
DeploymentCondition: lastTransitionTime#7:time= lastUpdateTime#6:time= message#5 reason#4 status#2!
    type#1!
DeploymentSpec: minReadySeconds#5:int paused#7:bool progressDeadlineSeconds#9:int? replicas#1:int?
    revisionHistoryLimit#6:int? selector#2!:LabelSelector strategy#4:DeploymentStrategy~
    template#3!:PodTemplateSpec
DeploymentStatus: availableReplicas#4:int collisionCount#8:int?
    conditions#6:[DeploymentCondition]@type observedGeneration#1:long readyReplicas#7:int
    replicas#2:int terminatingReplicas#9:int? unavailableReplicas#5:int updatedReplicas#3:int
DeploymentStrategy: rollingUpdate#2:RollingUpdateDeployment type#1
Job: apiVersion kind metadata#1:ObjectMeta spec#2:JobSpec status#3:JobStatus
JobCondition: lastProbeTime#3:time= lastTransitionTime#4:time= message#6 reason#5 status#2! type#1!
JobSpec: activeDeadlineSeconds#3:long? backoffLimit#7:int? backoffLimitPerIndex#12:int?
    completionMode#9? completions#2:int? managedBy#15? manualSelector#5:bool?
    maxFailedIndexes#13:int? parallelism#1:int? podFailurePolicy#11:PodFailurePolicy
    podReplacementPolicy#14? selector#4:LabelSelector successPolicy#16:SuccessPolicy
    suspend#10:bool? template#6!:PodTemplateSpec ttlSecondsAfterFinished#8:int?
JobStatus: active#4:int completedIndexes#7 completionTime#3:time conditions#1:[JobCondition]@type
    failed#6:int failedIndexes#10? ready#9:int? startTime#2:time succeeded#5:int terminating#11:int?
    uncountedTerminatedPods#8:UncountedTerminatedPods
PodFailurePolicy: rules#1!:[PodFailurePolicyRule]
PodFailurePolicyOnExitCodesRequirement: containerName#1? operator#2! values#3!:[int]
PodFailurePolicyOnPodConditionsPattern: status#2 type#1!
PodFailurePolicyRule: action#1! onExitCodes#2:PodFailurePolicyOnExitCodesRequirement
    onPodConditions#3:[PodFailurePolicyOnPodConditionsPattern]
PodTemplateSpec: metadata#1:ObjectMeta spec#2:PodSpec
ReplicaSet: apiVersion kind metadata#1:ObjectMeta spec#2:ReplicaSetSpec status#3:ReplicaSetStatus
ReplicaSetCondition: lastTransitionTime#3:time= message#5 reason#4 status#2! type#1!
ReplicaSetSpec: minReadySeconds#4:int replicas#1:int? selector#2!:LabelSelector
    template#3:PodTemplateSpec
ReplicaSetStatus: availableReplicas#5:int conditions#6:[ReplicaSetCondition]@type
    fullyLabeledReplicas#2:int observedGeneration#3:long readyReplicas#4:int replicas#1!:int
    terminatingReplicas#7:int?
RollingUpdateDeployment: maxSurge#2:intstr maxUnavailable#1:intstr
SuccessPolicy: rules#1!:[SuccessPolicyRule]
SuccessPolicyRule: succeededCount#2:int? succeededIndexes#1?
UncountedTerminatedPods: failed#2:[string] succeeded#1:[string]
"""
