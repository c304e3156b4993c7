"""Names of things, thresholds, and the clusters that places are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from memory_node.graph import Place, PositionSource
from memory_node.retrieval import concepts, naming, places, thresholds
from memory_node.retrieval.places import Evidence, Scored
from memory_node.storage.told import Told


@pytest.mark.parametrize(
    ("text", "concept"),
    [
        ("Where is the red chair?", "red chair"),
        ("cup", "cup"),
        ("find my Coffee-Mug!", "coffee mug"),
        ("how many chairs are there?", "chairs"),
        ("How many people do you see now?", "people"),
        ("the number of chairs", "chairs"),
        ("Where did I leave my keys?", "keys"),
        ("count all the red cups", "red cups"),
        ("have you seen the dog", "dog"),
        ("the", "the"),
        ("?", ""),
    ],
)
def test_what_a_question_asks_for(text: str, concept: str) -> None:
    assert naming.concept_of(text) == concept


@pytest.mark.parametrize(
    ("concept", "label", "cosine", "fit"),
    [
        ("cup", "cup", None, 1.0),
        ("cups", "cup", None, 1.0),
        ("couch", "sofa", 0.1, naming.OTHER_NAME),
        ("red couch", "sofa", None, naming.KIND_OF),
        ("chair", "office chair", None, naming.KIND_OF),
        ("chairs", "office chair", None, naming.KIND_OF),
        ("chair", "office chairs", None, naming.KIND_OF),
        ("office chairs", "chair", None, naming.KIND_OF),
        ("knives", "bread knife", None, naming.KIND_OF),
        ("shelves", "metal shelf", None, naming.KIND_OF),
        ("boxes", "metal box", None, naming.KIND_OF),
        ("people", "person", None, 1.0),
        ("mice", "computer mouse", None, naming.OTHER_NAME),
        ("feet", "foot", None, 1.0),
        ("firemen", "fireman", None, 1.0),
        ("potatoes", "potato", None, 1.0),
        ("buses", "bus", None, 1.0),
        ("couch", "red sofa", None, naming.KIND_OF),
        ("couches", "leather sofa", None, naming.KIND_OF),
        ("lamps", "brake light", None, 0.0),
        ("table", "red chair", 0.7, 0.0),
        ("red mug", "red chair", 0.7, 0.0),
        ("sofa", "large wooden chair", 0.7, 0.0),
        ("desk", "metal chair", 0.7, 0.0),
        ("metal table", "wooden table", 0.76, 0.76),
        ("dining room table", "dining table", 0.9, 0.9),
        ("large gizmo", "red chair", 0.7, 0.7),
        ("red mug", "blue mug", 0.9, 0.0),
        ("red mug", "mug", 0.9, naming.KIND_OF),
        ("door 2", "door 1", 0.95, 0.0),
        ("door", "door 1", None, naming.KIND_OF),
        ("door 2", "chair 2", 0.7, 0.0),
        ("red door 2", "blue chair 2", 0.7, 0.0),
        ("couch", "sofa 12", None, naming.KIND_OF),
        ("chairs", "office chair 3", None, naming.KIND_OF),
        ("chair", "3", 0.5, 0.0),
        ("3", "3", None, 1.0),
        ("large bin", "big bin", 0.9, 0.9),
        ("gray cup", "grey cup", 0.95, 0.95),
        ("oven", "refrigerator", 0.9, 0.0),
        ("wine glass", "glass", 0.9, 0.0),
        ("gizmo", "cup", 0.59, 0.0),
        ("gizmo", "cup", 0.61, 0.61),
        ("gizmo", "cup", None, 0.0),
        ("dog", "hot dog", 0.8, 0.0),
        ("bear", "teddy bear", 0.8, 0.0),
        ("light", "traffic light", 0.6, 0.0),
        ("monitor", "baby monitor", 0.9, 0.0),
        ("chair", "kitchen chair", 0.5, naming.KIND_OF),
        ("chair", "lawn chair", 0.75, naming.KIND_OF),
        ("table", "time table", 0.9, 0.0),
        ("toilet seat", "chair", 0.59, 0.0),
        ("car seat", "chair", None, 0.0),
        ("river bed", "bed", None, 0.0),
        ("chess table", "table", 0.63, 0.0),
        ("baby monitor", "monitor", 0.9, 0.0),
        ("office chair", "chair", 0.3, naming.KIND_OF),
        ("garden chair", "chair", 0.3, naming.KIND_OF),
        ("desk lamp", "lamp", 0.75, naming.KIND_OF),
        ("desk lamp", "lamp", None, 0.0),
    ],
)
def test_how_well_a_label_fits(concept: str, label: str, cosine: float | None, fit: float) -> None:
    assert naming.fit(concept, label, cosine, 0.6) == fit
    if (said := naming.fit_of_words(concept, label)) is not None:
        assert said == fit


def test_words_leave_to_meaning_only_what_the_vocabulary_does_not_tell() -> None:
    assert naming.fit_of_words("sofa", "couch 2") == naming.KIND_OF
    assert naming.fit_of_words("oven", "fridge") == 0.0
    assert naming.fit_of_words("cooling cabinet", "refrigerator") is None
    assert naming.fit_of_words("chair", "zorb chair") is None


def test_a_name_that_the_vocabulary_lacks_is_compared_with_all_names_of_a_label() -> None:
    asked: list[str] = []
    axes = {"cooling cabinet": (1.0, 0.0, 0.0), "fridge": (0.6, 0.8, 0.0), "refrigerator": (0.1, 0.0, 1.0)}

    def embed(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        vectors = np.array([axes.get(text.removeprefix("a photo of a "), (0.0, 0.0, 1.0)) for text in texts])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    plain = {"refrigerator": 0.1, "cup": 0.05}
    assert naming.sharpened(embed, "cooling cabinet", plain)["refrigerator"] == pytest.approx(0.6)
    assert {"fridge", "a photo of a fridge"} <= set(asked)
    assert naming.sharpened(lambda texts: None, "cooling cabinet", plain) == plain
    asked.clear()
    assert naming.sharpened(embed, "couch", plain) == plain
    assert not asked


def test_every_name_is_normalised_and_stands_once_with_a_thing() -> None:
    from memory_node.ingest.association import normalise_label

    assert len(concepts.groups()) > 400
    for names in concepts.groups():
        assert len(set(names)) == len(names)
        assert [normalise_label(name) for name in names] == list(names)


def test_rooms_are_rooms() -> None:
    assert concepts.is_room("kitchen") and concepts.is_room("sitting room")
    assert not concepts.is_room("oven")


def test_thresholds_by_model_and_by_setting() -> None:
    known = thresholds.of_model("sentence-transformers/all-MiniLM-L6-v2")
    assert known == thresholds.of_model("all-MiniLM-L6-v2")
    assert known.label > known.sentence
    assert thresholds.of_model("all-MiniLM-L6-v2", chosen=0.8).label == 0.8


class Piece(NamedTuple):
    x: float
    relevance: float = 0.9
    map_id: int = 0
    frame: str = "map"
    source: PositionSource = PositionSource.OBSERVER


def clusters_of(*pieces: Piece) -> list[Place]:
    """The places that pieces of evidence lie at, each seen once at the time 0."""
    zeros, texts = (0,) * len(pieces), ("",) * len(pieces)
    rows = Told(
        ids=tuple(range(1, len(pieces) + 1)), x=tuple(piece.x for piece in pieces), y=zeros, z=zeros,
        sources=tuple(int(piece.source) for piece in pieces), first_seen=zeros, last_seen=zeros,
        repeats=(1,) * len(pieces), confidence=(1.0,) * len(pieces), frames=tuple(piece.frame for piece in pieces),
        maps=tuple(piece.map_id for piece in pieces), map_names=texts, texts=texts, radii=zeros,
    )  # fmt: skip
    relevance = np.array([piece.relevance for piece in pieces], dtype=np.float64)
    found = places.clusters(Evidence.of_rows(rows, relevance))
    return [found.told(number).place for number in range(len(found))]


def test_clusters_are_real_places() -> None:
    near, far = clusters_of(Piece(0.0), Piece(1.0), Piece(2.0), Piece(40.0, 0.8))
    assert near.position == pytest.approx((1.0, 0.0, 0.0))
    assert (near.radius, near.support, near.confidence) == (pytest.approx(1.0), 3, pytest.approx(0.9 * 3 / 4))
    assert far.position == pytest.approx((40.0, 0.0, 0.0))
    assert (far.radius, far.confidence) == (0.0, pytest.approx(0.4))


def test_a_place_is_where_the_best_evidence_is_and_weak_evidence_only_widens_it() -> None:
    (found,) = clusters_of(Piece(0.0, 0.8), Piece(0.2, 0.78), *[Piece(2.0 + 0.1 * i, 0.45) for i in range(9)])
    assert found.position[0] == pytest.approx(0.09, abs=0.02)
    assert found.radius == pytest.approx(2.8 - found.position[0])


def test_weak_evidence_in_one_spot_outweighs_a_little_better_one_alone() -> None:
    (found,) = clusters_of(Piece(0.0, 0.52), *[Piece(2.0 + 0.1 * i, 0.5) for i in range(5)])
    assert found.position[0] == pytest.approx(2.2, abs=0.05)


def test_a_long_row_of_evidence_is_no_single_place() -> None:
    found = clusters_of(*[Piece(float(x)) for x in range(40)])
    assert len(found) >= 4
    assert max(place.radius for place in found) < 6.0


def test_places_are_those_that_average_linkage_gives_whatever_stands_alone() -> None:
    chance = np.random.default_rng(3)
    at = chance.uniform(0.0, 120.0, 80)
    tree = linkage(at[:, None], method="average")
    wanted = np.bincount(fcluster(tree, t=places.REACH, criterion="distance") - 1)
    assert sorted(place.support for place in clusters_of(*map(Piece, at.tolist()))) == sorted(wanted.tolist())


def test_places_of_two_maps_or_frames_are_two_places() -> None:
    assert len(clusters_of(Piece(0.0, map_id=1), Piece(0.0, map_id=2))) == 2
    assert len(clusters_of(Piece(0.0), Piece(0.0, frame="odom"), Piece(1.0, frame="odom"))) == 2


def test_a_place_is_measured_where_all_that_tells_of_it_is() -> None:
    mine, mixed = clusters_of(
        Piece(0.0, source=PositionSource.MEASURED), Piece(40.0, 0.8, source=PositionSource.MEASURED), Piece(40.5, 0.8)
    )
    assert (mine.position_source, mixed.position_source) == (PositionSource.MEASURED, PositionSource.OBSERVER)


def test_no_evidence_is_no_place() -> None:
    assert clusters_of() == []
    assert places.ranked([], 3600.0) == []


def test_recency_decides_between_equals() -> None:
    def place(seconds: float, confidence: float) -> Scored:
        stamp = round(seconds * 1e9)
        return Scored(Place((0.0, 0.0, 0.0), "map", PositionSource.MEASURED, 0.1, confidence, 3, 0, stamp))

    old, new, doubtful = place(0.0, 0.9), place(7200.0, 0.9), place(7200.0, 0.3)
    order = places.ranked([old, doubtful, new], 3600.0)
    assert [(scored.place.last_seen, scored.place.confidence) for scored in order] == [
        (7_200_000_000_000, 0.9),
        (0, 0.9),
        (7_200_000_000_000, 0.3),
    ]
    assert places.scores(0.9, 0, 7_200_000_000_000, 3600.0) == pytest.approx(0.9 * (0.7 + 0.3 * 0.25))


def test_what_was_seen_last_elsewhere_makes_all_the_others_older() -> None:
    def place(seconds: float, confidence: float) -> Scored:
        stamp = round(seconds * 1e9)
        return Scored(Place((0.0, 0.0, 0.0), "map", PositionSource.MEASURED, 0.1, confidence, 3, 0, stamp))

    old, new = place(0.0, 0.9), place(3600.0, 0.8)
    assert places.ranked([old, new], 3600.0) == [new, old]
    assert places.ranked([old, new], 3600.0, newest=round(36_000e9)) == [old, new]


def test_names_that_nothing_was_tuned_on_are_not_in_the_vocabulary() -> None:
    from benchmarks import naming_unseen

    names = {name for pair in naming_unseen.PAIRS for name in pair} | set(naming_unseen.ABSENT)
    assert (len(naming_unseen.PAIRS), len(naming_unseen.ABSENT)) == (40, 60)
    assert [name for name in sorted(names) if concepts.things(name)] == []


def test_a_name_of_several_meanings_makes_no_two_labels_one() -> None:
    assert "sofa" in concepts.other_names("couch") and "mug" in concepts.other_names("cups")
    assert concepts.other_names("screen") == [] and "screen" not in concepts.other_names("monitor")
