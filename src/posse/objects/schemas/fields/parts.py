"""What is written to parts of objects: bindings, evictions, scales, options of deletions."""

from __future__ import annotations

STRUCTS = """
Binding: apiVersion kind metadata#1:ObjectMeta target#2!:ObjectReference
DeleteOptions: apiVersion dryRun#5:[string] gracePeriodSeconds#1:long?
    ignoreStoreReadErrorWithClusterBreakingPotential#6:bool? kind orphanDependents#3:bool?
    preconditions#2:Preconditions propagationPolicy#4?
Eviction: apiVersion deleteOptions#2:DeleteOptions kind metadata#1:ObjectMeta
Preconditions: resourceVersion#2? uid#1?
Scale: apiVersion kind metadata#1:ObjectMeta spec#2:ScaleSpec status#3:ScaleStatus
ScaleSpec: replicas#1:int
ScaleStatus: replicas#1!:int selector#2
"""
