"""How many pods may be ended without asking more of their applications than they allow."""

from __future__ import annotations

from collections.abc import Iterable

from posse.engine.facts import BudgetFacts
from posse.engine.gangs import Member


class Budgets:
    """PodDisruptionBudgets by namespace. One that allows more than before is news."""

    def __init__(self) -> None:
        self._facts: dict[str, dict[str, BudgetFacts]] = {}
        self.eased = False

    def set(self, facts: BudgetFacts) -> None:
        there = self._facts.setdefault(facts.namespace, {})
        old = there.get(facts.name)
        there[facts.name] = facts
        same = old is not None and old.selector == facts.selector
        self.eased |= not same or old is None or old.allowed < facts.allowed

    def remove(self, namespace: str, name: str) -> None:
        there = self._facts.get(namespace, {})
        if there.pop(name, None) is not None:
            self.eased = True
        if not there:
            self._facts.pop(namespace, None)

    def __bool__(self) -> bool:
        return bool(self._facts)

    def of(self, member: Member) -> list[BudgetFacts]:
        there = self._facts.get(member.facts.name.partition("/")[0])
        if not there:
            return []
        labels = member.facts.labels
        return [
            each
            for _, each in sorted(there.items())
            if each.selector is not None and each.selector.matches(labels)
        ]

    def allow(self, member: Member) -> bool:
        """Whether it might be ended alone; a pod of two budgets cannot, see `Ledger.spend`."""
        budgets = self.of(member) if self._facts else []
        return not budgets or (len(budgets) == 1 and budgets[0].allowed > 0)

    def ledger(self, leaving: Iterable[Member]) -> Ledger:
        """What is left of the budgets, given who was let go and is not known to go yet."""
        ledger = Ledger(self)
        for member in leaving:
            for budget in self.of(member):
                ledger.spent[budget.key] = ledger.spent.get(budget.key, 0) + 1
        return ledger


class Ledger:
    """Spends budgets, and never more than there is."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self.spent: dict[tuple[str, str], int] = {}

    def spend(self, members: Iterable[Member]) -> bool:
        """Whether all of these may end, beside those spent for before; if so they are spent.

        A pod of two budgets cannot be evicted at all: the API does not reckon with that.
        """
        if not self._budgets:
            return True
        asked: dict[tuple[str, str], int] = {}
        allowed: dict[tuple[str, str], int] = {}
        for member in members:
            budgets = self._budgets.of(member)
            if len(budgets) > 1:
                return False
            for budget in budgets:
                asked[budget.key] = asked.get(budget.key, 0) + 1
                allowed[budget.key] = budget.allowed
        if any(self.spent.get(key, 0) + number > allowed[key] for key, number in asked.items()):
            return False
        for key, number in asked.items():
            self.spent[key] = self.spent.get(key, 0) + number
        return True
