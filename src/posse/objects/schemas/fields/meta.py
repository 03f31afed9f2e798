"""Metadata, selectors and conditions: the structs every kind shares."""

from __future__ import annotations

STRUCTS = """
Condition: lastTransitionTime!:time message! observedGeneration:long reason! status! type!
LabelSelector: matchExpressions:[LabelSelectorRequirement] matchLabels:{string}
LabelSelectorRequirement: key! operator! values:[string]
ManagedFieldsEntry: apiVersion fieldsType fieldsV1:any manager operation subresource time:time
ObjectMeta: annotations:{string} creationTimestamp:time deletionGracePeriodSeconds:long
    deletionTimestamp:time finalizers:[string]@ generateName generation:long labels:{string}
    managedFields:[ManagedFieldsEntry] name namespace ownerReferences:[OwnerReference]@uid
    resourceVersion selfLink uid
OwnerReference: apiVersion! blockOwnerDeletion:bool controller:bool kind! name! uid!
"""
