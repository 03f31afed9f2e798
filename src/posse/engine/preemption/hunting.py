"""For whom victims are still to be looked for: nobody's are looked for twice in vain.

A gang that found no victims is not tried again until something that could help it changed: room
came back or the gang itself changed (then it is placed, or fails, anew), somebody it may end has
sat down, ran long enough, or may be ended at last.
"""

from __future__ import annotations

from posse.engine.gangs import Gang


class Hunting:
    def __init__(self) -> None:
        # Gangs that have seats, or for which some are kept, by queue and priority.
        self.seated: dict[str, dict[int, dict[str, Gang]]] = {}
        # Those that changed since they were last sorted into queues.
        self._changed: dict[str, Gang] = {}
        self._place_of: dict[str, tuple[str, int]] = {}
        # Spared for now because they have hardly run; until when.
        self.fresh: dict[str, float] = {}
        # For whom there was no time to look; the next round does, in their turn.
        self.put_off: dict[str, Gang] = {}

    def note(self, gang: Gang) -> None:
        """Its seats, or what is known of it, may have changed."""
        self._changed[gang.key] = gang

    def forget(self, gang: Gang) -> None:
        self._changed.pop(gang.key, None)
        self.put_off.pop(gang.key, None)
        self._leave(gang.key)

    def sort_out(self, now: float) -> dict[str, int]:
        """Bring the queues up to date: the lowest priority of who is new in each."""
        for key in [key for key, date in self.fresh.items() if date <= now]:
            del self.fresh[key]
            place = self._place_of.get(key)
            if place is not None:
                self._changed[key] = self.seated[place[0]][place[1]][key]
        changed, self._changed = self._changed, {}
        new: dict[str, int] = {}
        for key, gang in changed.items():
            self._leave(key)
            if gang.facts is None or not (gang.muster.seated or gang.holds):
                continue
            queue, priority = gang.facts.queue, gang.facts.priority
            self.seated.setdefault(queue, {}).setdefault(priority, {})[key] = gang
            self._place_of[key] = (queue, priority)
            new[queue] = min(new.get(queue, priority), priority)
        return new

    def next_date(self) -> float | None:
        if self.put_off:
            return 0.0
        return min(self.fresh.values(), default=None)

    def _leave(self, key: str) -> None:
        place = self._place_of.pop(key, None)
        if place is not None:
            queue, priority = place
            levels = self.seated[queue]
            del levels[priority][key]
            if not levels[priority]:
                del levels[priority]
            if not levels:
                del self.seated[queue]
        self.fresh.pop(key, None)
