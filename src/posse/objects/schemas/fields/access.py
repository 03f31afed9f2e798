"""Roles and who holds them."""

from __future__ import annotations

STRUCTS = """
AggregationRule: clusterRoleSelectors#1:[LabelSelector]
ClusterRole: aggregationRule#3:AggregationRule apiVersion kind metadata#1:ObjectMeta
    rules#2:[PolicyRule]=
ClusterRoleBinding: apiVersion kind metadata#1:ObjectMeta roleRef#3!:RoleRef subjects#2:[Subject]
PolicyRule: apiGroups#2:[string] nonResourceURLs#5:[string] resourceNames#4:[string]
    resources#3:[string] verbs#1!:[string]
Role: apiVersion kind metadata#1:ObjectMeta rules#2:[PolicyRule]=
RoleBinding: apiVersion kind metadata#1:ObjectMeta roleRef#3!:RoleRef subjects#2:[Subject]
RoleRef: apiGroup#1 kind#2! name#3!
Subject: apiGroup#2 kind#1! name#3! namespace#4
"""
