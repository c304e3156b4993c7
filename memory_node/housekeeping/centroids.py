"""Vectors of ended episodes: the centroid of their members', once these all have one. Part of the job `episodes`.

One that nobody named loses its vector after KEPT, in the job `archive`: else there would be one more a day for ever.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import NO_ID, EdgeType, Tier
from memory_node.housekeeping import episodes as endings
from memory_node.housekeeping.ages import Ages
from memory_node.housekeeping.runtime import JobContext, StepResult
from memory_node.storage import episodes, jobs, vectors
from memory_node.storage.database import Transaction
from memory_node.storage.ids import id_table

PAGE = 1000
"""Rows of an episode read in one go."""
MAX_TEXTS = 1000
"""Distinct texts a centroid is made of; the most frequent ones."""
KEPT = 3 * 86_400.0
"""s after its end that an episode linked by silence has a vector; by then its gists, which have theirs, answer."""
LOOKS = 5
"""Episodes found waiting in one run after which the others wait for the next one."""

_BEGIN = (-(2**63), 0)


@dataclass
class _Scan:
    """An episode being read: it and those inside it, of which the first are done.

    Attributes:
        after: stamp (ns) and id of the last row read.
        own: observations of the episode itself.
        weights: texts that stand for the rows, with how many each stands for.
    """

    id: int
    ids: list[int]
    after: tuple[int, int] = _BEGIN
    own: int = 0
    weights: Counter[int] = field(default_factory=Counter)


class Centroids:
    """Reads one page of an episode a step, and writes its vector and count after the last.

    What was read is kept in memory: after a kill the episode is read again. While texts have no vector yet, an episode
    is looked at again only when new ones have come.
    """

    def __init__(self) -> None:
        self._scan: _Scan | None = None
        self._waited: dict[int, int] = {}
        """Episodes that waited, with the newest vector there was then."""
        self._looks = 0

    def forget(self) -> None:
        """Begin the episode at hand anew: rows were linked."""
        self._scan = None

    def step(self, context: JobContext) -> StepResult:
        """Do a step of a run; done when no episode is left that could have its vector now."""
        db = context.db
        with db.read() as conn:
            pending = jobs.cursor(conn, endings.JOB).get("pending", [])
            model = vectors.active_model(conn)
            newest = vectors.newest(conn)
            scan = self._scan = self._chosen(conn, pending, newest)
            if scan is None:
                self._looks = 0
                return StepResult()
            read, waits = _read(conn, scan, None if model is None else model.id)
            late = is_past(conn, scan.id, Ages(conn, context.present, context.now))
            vector = None if model is None or scan.ids or late else _centroid(conn, model.id, scan.weights)
        if waits:
            self._waited[scan.id] = newest
            self._looks += 1
        elif not scan.ids:
            self._waited.pop(scan.id, None)
            db.write(lambda tx: _store(tx, scan, model.id if model else None, vector))
        if waits or not scan.ids:
            self._scan = None
        return StepResult(read, int(not waits and not scan.ids), done=False)

    def _chosen(self, conn: sqlite3.Connection, pending: Iterable[int], newest: int) -> _Scan | None:
        """The episode at hand, else the one that was not looked at for longest and may have its vector by now."""
        waiting = {id_: self._waited.get(id_, -1) for id_ in pending}
        if self._scan is not None and self._scan.id in waiting:
            return self._scan
        self._waited = {id_: seen for id_, seen in waiting.items() if seen >= 0}
        able = [id_ for id_, seen in waiting.items() if seen < newest]
        if not able or self._looks >= LOOKS:
            return None
        id_ = min(able, key=lambda one: waiting[one])
        return _Scan(id_, episodes.descendants(conn, id_))


def is_past(conn: sqlite3.Connection, episode_id: int, ages: Ages) -> bool:
    """Whether an episode that silence linked ended so long ago that it has no vector any more."""
    session_id, end, explicit = conn.execute(
        "SELECT session_id, last_stamp, (SELECT explicit FROM episode WHERE episode.id = node.id) FROM node"
        " WHERE id = ?",
        (episode_id,),
    ).fetchone() or (NO_ID, 0, True)
    # A stamp ahead of the clock says nothing of the age, and must not stop those after it.
    ahead = end > ages.cutoff(session_id, 0.0)
    return not explicit and (ahead or end <= ages.cutoff(session_id, KEPT))


def _read(conn: sqlite3.Connection, scan: _Scan, model_id: int | None) -> tuple[int, bool]:
    """Read on by one page; return how many rows that were, and whether a text among them has no vector yet."""
    rows = conn.execute(
        "SELECT id, stamp, text_id, tier FROM node INDEXED BY node_episode WHERE episode_id = ?"
        " AND (stamp, id) > (?, ?) AND kind = 1 AND layer_id NOT IN (SELECT id FROM layer WHERE internal = 1)"
        f" ORDER BY stamp, id LIMIT {PAGE}",
        (scan.ids[0], *scan.after),
    ).fetchall()
    texts = Counter(row[2] for row in rows if row[2] is not None)
    texts.update(_standing_for(conn, [row[0] for row in rows if row[3] == Tier.ARCHIVED]))
    scan.weights.update(texts)
    if scan.ids[0] == scan.id:
        scan.own += len(rows)
    if len(rows) == PAGE:
        scan.after = (rows[-1][1], rows[-1][0])
    else:
        scan.after = _BEGIN
        del scan.ids[0]
    return len(rows), model_id is not None and vectors.waited_for(conn, model_id, texts)


def _standing_for(conn: sqlite3.Connection, archived: list[int]) -> dict[int, int]:
    """Texts of the gists that hold archived rows, with how many each holds."""
    if not archived:
        return {}
    rows = conn.execute(
        "SELECT g.text_id, count(*) FROM json_each(?) AS given CROSS JOIN edge AS e INDEXED BY edge_target"
        f" ON e.target = given.value AND e.type = {int(EdgeType.SUMMARIZES)} CROSS JOIN node AS g ON g.id = e.source"
        " WHERE g.text_id IS NOT NULL GROUP BY g.text_id",
        (id_table(archived),),
    )
    return dict(rows.fetchall())


def _centroid(conn: sqlite3.Connection, model_id: int, weights: Counter[int]) -> NDArray[np.float32] | None:
    """The mean of the vectors of texts by weight, of any length; None without any."""
    chosen = dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:MAX_TEXTS])
    ids, rows = vectors.of_texts(conn, model_id, chosen)
    if not len(ids):
        return None
    mean: NDArray[np.float32] = np.array([chosen[int(text_id)] for text_id in ids], np.float32) @ rows
    return mean


def _store(tx: Transaction, scan: _Scan, model_id: int | None, vector: NDArray[np.float32] | None) -> None:
    """Keep the centroid and the count of an episode, and that it isn't waited for any more."""
    pending = jobs.cursor(tx.conn, endings.JOB).get("pending", [])
    jobs.save_cursor(tx, endings.JOB, {"pending": [one for one in pending if one != scan.id]})
    episode = episodes.get(tx.conn, scan.id)
    if episode is None:
        return
    if episode.observation_count != scan.own:
        episodes.update(tx, scan.id, observation_count=scan.own)
    if model_id is not None and vector is not None and vector.any():
        vectors.add_node(tx, model_id, scan.id, vector)
