"""PodDisruptionBudgets."""

from __future__ import annotations

STRUCTS = """
PodDisruptionBudget: apiVersion kind metadata#1:ObjectMeta spec#2:PodDisruptionBudgetSpec
    status#3:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: maxUnavailable#3:intstr minAvailable#1:intstr selector#2:LabelSelector^
    unhealthyPodEvictionPolicy#4?
PodDisruptionBudgetStatus: conditions#7:[Condition]@type currentHealthy#4:int= desiredHealthy#5:int=
    disruptedPods#2:{time} disruptionsAllowed#3:int= expectedPods#6:int= observedGeneration#1:long
"""
