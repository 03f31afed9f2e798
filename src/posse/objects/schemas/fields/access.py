"""Roles and who holds them."""

from __future__ import annotations

STRUCTS = """
AggregationRule: clusterRoleSelectors:[LabelSelector]
ClusterRole: aggregationRule:AggregationRule apiVersion kind metadata:ObjectMeta
    rules:[PolicyRule]
ClusterRoleBinding: apiVersion kind metadata:ObjectMeta roleRef!:RoleRef subjects:[Subject]
PolicyRule: apiGroups:[string] nonResourceURLs:[string] resourceNames:[string] resources:[string]
    verbs!:[string]
Role: apiVersion kind metadata:ObjectMeta rules:[PolicyRule]
RoleBinding: apiVersion kind metadata:ObjectMeta roleRef!:RoleRef subjects:[Subject]
RoleRef: apiGroup kind! name!
Subject: apiGroup kind! name! namespace
"""
