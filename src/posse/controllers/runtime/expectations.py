"""What was written and not yet seen: a stale cache must not be answered with a second write.

Needed where names are generated, so that the API server cannot refuse the duplicate. Expectations
are kept by uid: the object itself arriving in the cache, or leaving it, fulfils them. One that is
never seen (created and gone between two lists) lapses, so that no key is blocked for ever.
"""

from __future__ import annotations

from posse.controllers.runtime.ownership import Key
from posse.world import World

LAPSE_AFTER = 300.0


class Expectations:
    def __init__(self, world: World, *, lapse_after: float = LAPSE_AFTER) -> None:
        self._world = world
        self._lapse_after = lapse_after
        self._creations: dict[Key, dict[str, float]] = {}
        self._deletions: dict[Key, dict[str, float]] = {}
        self._owners: dict[str, Key] = {}

    def created(self, key: Key, uid: str) -> None:
        """`key` created an object of that uid; say so right after the API server's answer."""
        self._expect(self._creations, key, uid)

    def deleted(self, key: Key, uid: str) -> None:
        """`key` asked for the deletion of that uid."""
        self._expect(self._deletions, key, uid)

    def settled(self, key: Key) -> bool:
        """The cache shows everything this key has written: counting objects is safe."""
        now = self._world.monotonic()
        for expected in (self._creations, self._deletions):
            waiting = expected.get(key, {})
            for uid, since in list(waiting.items()):
                if now - since >= self._lapse_after:
                    self._fulfil(expected, uid)
            if expected.get(key):
                return False
        return True

    def appeared(self, uid: str) -> None:
        self._fulfil(self._creations, uid)

    def ending(self, uid: str) -> None:
        """The object carries a deletionTimestamp or is gone."""
        self._fulfil(self._creations, uid)
        self._fulfil(self._deletions, uid)

    def _expect(self, expected: dict[Key, dict[str, float]], key: Key, uid: str) -> None:
        expected.setdefault(key, {})[uid] = self._world.monotonic()
        self._owners[uid] = key

    def _fulfil(self, expected: dict[Key, dict[str, float]], uid: str) -> None:
        key = self._owners.get(uid)
        if key is None or uid not in expected.get(key, {}):
            return
        del expected[key][uid]
        if not expected[key]:
            del expected[key]
        if not any(uid in other.get(key, {}) for other in (self._creations, self._deletions)):
            del self._owners[uid]
