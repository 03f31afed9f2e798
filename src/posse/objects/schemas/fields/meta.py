"""Metadata, selectors and conditions: the structs every kind shares."""

from __future__ import annotations

STRUCTS = """
Condition: lastTransitionTime#4!:time message#6! observedGeneration#3:long reason#5! status#2!
    type#1!
LabelSelector: matchExpressions#2:[LabelSelectorRequirement] matchLabels#1:{string}
LabelSelectorRequirement: key#1! operator#2! values#3:[string]
ManagedFieldsEntry: apiVersion#3 fieldsType#6 fieldsV1#7:any manager#1 operation#2 subresource#8
    time#4:time
ObjectMeta: annotations#12:{string} creationTimestamp#8:time deletionGracePeriodSeconds#10:long?
    deletionTimestamp#9:time finalizers#14:[string]@ generateName#2 generation#7:long
    labels#11:{string} managedFields#17:[ManagedFieldsEntry] name#1 namespace#3
    ownerReferences#13:[OwnerReference]@uid resourceVersion#6 selfLink#4 uid#5
OwnerReference: apiVersion#5! blockOwnerDeletion#7:bool? controller#6:bool? kind#1! name#3! uid#4!
"""
