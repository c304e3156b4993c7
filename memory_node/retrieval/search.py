"""Search by meaning, words, place and time, each with any filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_node.index.chronicle import in_time
from memory_node.index.nearest import nearest
from memory_node.index.rows import View
from memory_node.retrieval import archived, digest, things, words
from memory_node.retrieval.digest import Digest
from memory_node.retrieval.filters import Resolved
from memory_node.retrieval.findings import Findings
from memory_node.retrieval.folding import Fold, fold, fold_nearest, fold_newest
from memory_node.retrieval.groups import Group
from memory_node.retrieval.lexicon import Lexicon
from memory_node.retrieval.plan import Plan
from memory_node.retrieval.reach import Reach
from memory_node.retrieval.things import Things
from memory_node.retrieval.words import Query
from memory_node.storage import meta, texts

if TYPE_CHECKING:
    import sqlite3

    from memory_node.index.matrix import Slots, VectorView
    from memory_node.index.projections import Projections
    from memory_node.storage.database import Database
    from memory_node.storage.vectors import Model

BROAD = 0.5  # share of rows from which the best are searched first and looked at after, instead of the other way round
SPARE = 8  # texts looked at beyond those asked for, for what does not pass
COUNTED = 16_384  # rows that are counted on the way
FEW_TEXTS = 512  # candidates that are all scored, instead of those that postings tell of


class Hit(NamedTuple):
    """A distinct text, or a node with a vector of its own.

    Attributes:
        text_id: 0 when it is a node. node_id: 0 when it is a text.
        node_ids: nodes of the text that pass the filter, the newest first, at most 16; the node itself.
        total: how many pass. kind: of the newest.
        similarity: cosine of the best part, or None when not searched by meaning.
        lexical: share of the query's words, 0..1 (see words.py), or None when not searched by words.
    """

    text_id: int
    node_id: int
    node_ids: tuple[int, ...]
    total: int
    kind: int
    similarity: float | None = None
    lexical: float | None = None


class Said(NamedTuple):
    """A query's words, None without any: their weight (sum of idf), the most that a text can have, and `lexical`.

    Attributes:
        shares: `lexical` by id, of the texts asked for that have any of the words.
    """

    weight: float
    most: float
    shares: dict[int, float]
    query: Query | None


Flags = NDArray[np.bool_]


class Searcher:
    """Every read that needs an index. Safe to use from any number of threads; only in_time knows archived rows."""

    def __init__(self, db: Database, projections: Projections) -> None:
        self._db = db
        self._projections = projections
        self._lexicon = Lexicon()
        self.reach = Reach()

    @property
    def model(self) -> Model | None:
        """The model whose vectors rank; no others may be compared with a query's."""
        return self._projections.model

    def meaning(
        self,
        vector: NDArray[np.float32],
        k: int,
        resolved: Resolved,
        plan: Plan | None = None,
        least: float = -np.inf,
        seen: Findings | None = None,
    ) -> list[Hit]:
        """Return the k texts and nodes whose vectors are most like vector (D,), the best first; fewer if fewer pass.

        Args:
            least: cosine from which on they are wanted. seen: what was found for the vector before.
        """
        plan, seen = plan or Plan(), seen or Findings("")
        rows, index = self._projections.rows.view, self._projections.vectors
        view = seen.view(index)
        if k <= 0 or not view.count:
            return []
        with plan.stage("filter"):
            share = rows.share(resolved)
        allowed = None
        wanted = k
        if share >= BROAD:
            plan.paths.append("broad")
            wanted = int(k / share) + SPARE
        else:
            allowed = self._allowed(rows, view, resolved, plan)
        while True:
            with plan.stage("vectors"):
                if allowed is None:
                    found = seen.alike(index, vector, wanted, least)
                else:
                    found = index.find(view, vector, wanted, allowed)
            plan.paths.append(found.path)
            seen.by_graph |= found.path == "graph"
            plan.compared += found.compared
            with plan.stage("group"):
                slots = found.slots[found.similarities >= least]
                texts, nodes = view.columns["text"][slots], view.columns["node"][slots]
                owners = zip(texts.tolist(), nodes.tolist(), found.similarities[: len(slots)].tolist(), strict=True)
                hits = _hits(rows, resolved, owners, k, seen, by_meaning=True)
            if len(hits) >= k or len(slots) < wanted:
                return hits
            # Parts of one text, or rows that do not pass, took places.
            wanted *= 4
            if allowed is None:
                allowed = self._allowed(rows, view, resolved, plan)

    def words(
        self,
        query: str,
        k: int,
        resolved: Resolved,
        plan: Plan | None = None,
        least: float = 0.0,
        seen: Findings | None = None,
    ) -> list[Hit]:
        """Return the k texts that say most of the query's words, the best first. Any text is a valid query.

        Args:
            least: share of the words, 0..1; nothing is looked for where no text can have as much.
            seen: what was found for the words before.
        """
        plan, seen = plan or Plan(), seen or Findings(query)
        rows = self._projections.rows.view
        with self._db.read() as conn, plan.stage("words"):
            asked = words.understand(conn, self._lexicon, query, rows.texts) if k > 0 else None
            if asked is None or asked.most < least:
                return []
            passing = None if rows.share(resolved) >= BROAD else _texts(rows, resolved)
            if passing is not None:
                plan.candidates = int(np.count_nonzero(passing))
                if plan.candidates <= FEW_TEXTS:
                    plan.paths.append("all")
                    return _word_hits(rows, resolved, words.scored(conn, asked, np.flatnonzero(passing), k), k, seen)
            plan.paths.append("postings")
            wanted = _enough(k)
            if passing is None:
                rated, as_many = seen.rated(conn, asked, wanted)
                hits = _word_hits(rows, resolved, rated, k, seen)
                if len(hits) >= k or not as_many:
                    return hits
                passing = _texts(rows, resolved)
            ids = words.matching(asked, wanted, passing)
            if len(ids) < wanted and asked.horizon:
                ids = np.union1d(ids, words.older(conn, asked, wanted, passing))
            return _word_hits(rows, resolved, words.scored(conn, asked, ids, wanted), k, seen)

    def said(self, query: str, text_ids: Sequence[int]) -> Said:
        """Return what the query's words weigh, and how much of them texts say."""
        with self._db.read() as conn:
            asked = words.understand(conn, self._lexicon, query, self._projections.rows.view.texts)
            if asked is None:
                return Said(0.0, 0.0, {}, None)
            shares = asked.shares(conn, np.array(text_ids, dtype=np.int64)).tolist() if text_ids else []
            some = {id_: share for id_, share in zip(text_ids, shares, strict=True) if share > 0.0}
            return Said(asked.weight, asked.most, some, asked)

    def has_compared_all(self, conn: sqlite3.Connection, seen: Findings) -> bool:
        """Whether `meaning` looked at the vectors of all texts that conn knows: none waits for its vector or the index.

        Args:
            seen: what `meaning` was given.
        """
        index, model = self._projections.vectors, self.model
        if model is None or self._projections.watermark < meta.revision(conn):
            return False
        return seen.view(index) is index.view and not texts.are_waiting(conn, model.id)

    def alike_by_words(
        self,
        conn: sqlite3.Connection,
        asked: Query,
        vector: NDArray[np.float32],
        k: int,
        resolved: Resolved,
        seen: Findings,
        known: Iterable[int],
    ) -> list[tuple[float, float]] | None:
        """Return the largest cosine to a vector (D,) by `lexical`, of the texts that `words` chooses k from.

        Known ones are left out. None where the filter chooses first.
        """
        if self._projections.rows.view.share(resolved) < BROAD:
            return None
        view = seen.view(self._projections.vectors)
        ids = np.array(sorted({*seen.matching(asked, _enough(k)).tolist()}.difference(known)), dtype=np.int64)
        slots = view.of_texts(ids)
        shares = asked.shares(conn, ids)[np.searchsorted(ids, view.columns["text"][slots])]
        best: dict[float, float] = {}
        for cosine, share in zip(view.scores(vector, slots).tolist(), shares.tolist(), strict=True):
            best[share] = max(cosine, best.get(share, -1.0))
        return [(cosine, share) for share, cosine in best.items()]

    def near(
        self, center: tuple[float, ...], radius: float | None, k: int, resolved: Resolved
    ) -> list[tuple[int, float]]:
        """Return (node id, distance in m) of the k nearest rows, the nearest first.

        Args:
            center: (x, y) measures on the floor, (x, y, z) in space.
            radius: nothing farther; None for no bound.
        """
        ids, distances = self.nearest(center, radius, k, resolved)
        return list(zip(ids.tolist(), distances.tolist(), strict=True))

    def nearest(
        self, center: tuple[float, ...], radius: float | None, k: int, resolved: Resolved
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return what `near` does, as ids and distances (m)."""
        rows = self._projections.rows.view
        slots, distances = nearest(rows, resolved, center, radius, k)
        return rows.columns["id"][slots], distances

    def in_time(
        self, resolved: Resolved, newest_first: bool = True, k: int = 10, include_archived: bool = False
    ) -> list[int]:
        """Return ids of the first k rows: by the end of their span downwards, or by its start upwards."""
        rows = self._projections.rows.view
        slots = in_time(rows, resolved, newest_first, k)
        ids: list[int] = rows.columns["id"][slots].tolist()
        if not include_archived:
            return ids
        with self._db.read() as conn:
            old = archived.in_time(conn, resolved, newest_first, k)
        stamps = rows.columns["last_stamp" if newest_first else "stamp"][slots].tolist()
        both = sorted({*zip(stamps, ids, strict=True), *old}, reverse=newest_first)
        return [id_ for _, id_ in both[:k]]

    def said_lately(self, resolved: Resolved, most: int) -> Digest:
        """Return what the passing rows say, each text once, the newest first; see `digest.lately`."""
        return digest.lately(self._projections.rows.view, resolved, most)

    def said_near(self, center: tuple[float, ...], radius: float, most: int, resolved: Resolved) -> Digest:
        """Return what the passing rows within radius (m) say, each text once, the nearest first; see `digest.near`."""
        return digest.near(self._projections.rows.view, resolved, center, radius, most)

    def passing(self, resolved: Resolved, ids: Sequence[int]) -> list[int]:
        """Return those of the rows that pass, in the same order."""
        rows = self._projections.rows.view
        slots = rows.slots(np.array(ids, dtype=np.int64))
        passes = (slots >= 0) & rows.passes(resolved, slots)
        return [id_ for id_, does in zip(ids, passes.tolist(), strict=True) if does]

    def things(self, resolved: Resolved, fits: Mapping[int, float] | None = None) -> Things:
        """Return the entities that pass, all or those whose label's text has a fit; see `things.select`."""
        return things.select(self._projections.rows.view, resolved, fits)

    def folds(self, text_id: int, resolved: Resolved, most: int) -> list[Fold]:
        """Return the passing rows of a text, those at one place told as one, the newest first, at most `most`."""
        return fold(self._projections.rows.view, resolved, text_id, most)

    def newest_folds(self, groups: Sequence[Sequence[int]], resolved: Resolved, most: int) -> list[list[Fold]]:
        """Return those of each group of rows that pass, what is one told once, the newest first, at most `most`."""
        return fold_newest(self._projections.rows.view, resolved, groups, most)

    def nearest_folds(self, ids: Sequence[int], resolved: Resolved, moment: int, most: int) -> list[Fold]:
        """The same of one group, the nearest to a moment (ns) first, layers in turn; see `folding.fold_nearest`."""
        return fold_nearest(self._projections.rows.view, resolved, ids, moment, most)

    def count(self, resolved: Resolved) -> int:
        """How many rows pass."""
        return len(self._projections.rows.view.select(resolved))

    def beyond(self, resolved: Resolved, limit: int) -> int | None:
        """How many rows pass beyond limit, None where counting them costs more than finding the first."""
        if self._projections.rows.view.count > COUNTED:
            return None
        return max(0, self.count(resolved) - limit)

    def _allowed(self, rows: View, view: VectorView, resolved: Resolved, plan: Plan) -> Slots:
        """Slots of the vectors of texts and nodes that pass, ascending."""
        plan.paths.append("filtered")
        with plan.stage("filter"):
            allowed = view.of_texts(np.flatnonzero(_texts(rows, resolved)))
            if len(view.of_nodes):
                owners = rows.slots(view.columns["node"][view.of_nodes])
                passes = (owners >= 0) & rows.passes(resolved, owners)
                alive = view.columns["died"][view.of_nodes] > view.version
                allowed = np.sort(np.concatenate([allowed, view.of_nodes[passes & alive]]))
            plan.candidates = len(allowed)
        return allowed


def _enough(k: int) -> int:
    """So many texts with most of the words are looked at that k of them will pass."""
    return k + k // 4 + SPARE


def _texts(rows: View, resolved: Resolved) -> Flags:
    """Whether any passing row has the text, by text id."""
    texts = rows.columns["text"][rows.select(resolved)]
    flags = np.zeros(int(texts.max(initial=0)) + 1, dtype=bool)
    flags[texts] = True
    flags[0] = False
    return flags


def _hits(
    rows: View,
    resolved: Resolved,
    owners: Iterable[tuple[int, int, float]],
    k: int,
    seen: Findings,
    by_meaning: bool,
) -> list[Hit]:
    """Return hits of the first k of (text, node, score) that pass; an owner counts where it comes first."""
    best: dict[tuple[int, int], float] = {}
    for text, node, score in owners:
        best.setdefault((text, node), score)
    groups = seen.groups(rows, resolved, [text for text, _ in best if text])
    alone = _alone(rows, resolved, [node for _, node in best if node])
    hits: list[Hit] = []
    for (text, node), score in best.items():
        found = groups.get(text) if text else alone.get(node)
        if found is not None:
            hits.append(Hit(text, node, *found, score, None) if by_meaning else Hit(text, node, *found, None, score))
            if len(hits) == k:
                break
    return hits


def _alone(rows: View, resolved: Resolved, nodes: list[int]) -> dict[int, Group]:
    """Those of the nodes that pass."""
    if not nodes:
        return {}
    slots = rows.slots(np.array(nodes, dtype=np.int64))
    slots = slots[slots >= 0]
    slots = slots[rows.passes(resolved, slots)]
    ids, kinds = rows.columns["id"][slots].tolist(), rows.columns["kind"][slots].tolist()
    return {id_: Group((id_,), 1, kind) for id_, kind in zip(ids, kinds, strict=True)}


def _word_hits(
    rows: View, resolved: Resolved, scored: list[tuple[int, float]], k: int, seen: Findings
) -> list[Hit]:
    return _hits(rows, resolved, ((text, 0, lexical) for text, lexical in scored), k, seen, by_meaning=False)
