"""What was written and not yet seen: a stale cache must not be answered with a second write.

Needed where names are generated, so that the API server cannot refuse the duplicate. Expectations
are kept by uid: the object itself arriving in the cache, or leaving it, fulfils them, also when its
event overtakes the answer to the write. One that is never seen (created and gone between two
lists) lapses, so that no key is blocked for ever.
"""

from __future__ import annotations

from posse.objects.ownership import Key
from posse.world import World

LAPSE_AFTER = 300.0
_GONE_REMEMBERED = 4096


class Expectations:
    def __init__(self, world: World, *, lapse_after: float = LAPSE_AFTER) -> None:
        self._world = world
        self._lapse_after = lapse_after
        self._creations: dict[Key, dict[str, float]] = {}  # key -> uid -> since
        self._deletions: dict[Key, dict[str, float]] = {}
        self._owners: dict[str, Key] = {}  # uid -> key
        self._present: dict[str, bool] = {}  # uid -> whether its deletion has begun
        self._gone: dict[str, None] = {}

    def created(self, key: Key, uid: str) -> None:
        """`key` created an object of that uid; say so right after the API server's answer."""
        if uid not in self._present and uid not in self._gone:
            self._expect(self._creations, key, uid)

    def deleted(self, key: Key, uid: str) -> None:
        """`key` asked for the deletion of that uid."""
        if not self._present.get(uid) and uid not in self._gone:
            self._expect(self._deletions, key, uid)

    def settled(self, key: Key) -> bool:
        """The cache shows everything this key has written: counting objects is safe."""
        return self.lapses_in(key) is None

    def lapses_in(self, key: Key) -> float | None:
        """Seconds until nothing is expected any more, come what may; None when nothing is."""
        now = self._world.monotonic()
        latest: float | None = None
        for expected in (self._creations, self._deletions):
            for uid, since in list(expected.get(key, {}).items()):
                left = since + self._lapse_after - now
                if left <= 0:
                    self._fulfil(expected, uid)
                else:
                    latest = left if latest is None else max(latest, left)
        return latest

    # What the cache shows.

    def appeared(self, uid: str) -> None:
        self._present.setdefault(uid, False)
        self._fulfil(self._creations, uid)

    def ending(self, uid: str) -> None:
        """It carries a deletionTimestamp."""
        self._present[uid] = True
        self._fulfil(self._creations, uid)
        self._fulfil(self._deletions, uid)

    def gone(self, uid: str) -> None:
        self._present.pop(uid, None)
        self._gone[uid] = None
        if len(self._gone) > _GONE_REMEMBERED:
            del self._gone[next(iter(self._gone))]
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
