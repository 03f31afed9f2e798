"""Classes of storage, and what drivers say of themselves, of nodes and of the room they have."""

from __future__ import annotations

STRUCTS = """
CSIDriver: apiVersion kind metadata#1:ObjectMeta spec#2!:CSIDriverSpec
CSIDriverSpec: attachRequired#1:bool? fsGroupPolicy#5? nodeAllocatableUpdatePeriodSeconds#9:long?
    podInfoOnMount#2:bool? preventPodSchedulingIfMissing#11:bool? requiresRepublish#7:bool?
    seLinuxMount#8:bool? serviceAccountTokenInSecrets#10:bool? storageCapacity#4:bool?
    tokenRequests#6:[StorageTokenRequest] volumeLifecycleModes#3:[string]
CSINode: apiVersion kind metadata#1:ObjectMeta spec#2!:CSINodeSpec
CSINodeDriver: allocatable#4:VolumeNodeResources name#1! nodeID#2! topologyKeys#3:[string]=
CSINodeSpec: drivers#1!:[CSINodeDriver]=@name
CSIStorageCapacity: apiVersion capacity#4:quantity kind maximumVolumeSize#5:quantity
    metadata#1:ObjectMeta nodeTopology#2:LabelSelector storageClassName#3!
StorageClass: allowVolumeExpansion#6:bool? allowedTopologies#8:[TopologySelectorTerm] apiVersion
    kind metadata#1:ObjectMeta mountOptions#5:[string] parameters#3:{string} provisioner#2!
    reclaimPolicy#4? volumeBindingMode#7?
StorageTokenRequest: audience#1!= expirationSeconds#2:long?
TopologySelectorLabelRequirement: key#1! values#2!:[string]
TopologySelectorTerm: matchLabelExpressions#1:[TopologySelectorLabelRequirement]
VolumeNodeResources: count#1:int?
"""
