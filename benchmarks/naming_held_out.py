"""Other names and absent things that retrieval/concepts.py was not written for: `python -m benchmarks.naming_held_out`.

A world of an office, a workshop and the outdoors. The words were written down once, to measure; concepts.py was not
changed after. Reported are all pairs and absent names as asked, and apart those that concepts.py does not have.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.entities_systems import load_embedder
from memory_node.retrieval import concepts, naming, thresholds

_PAIRS = """
lanyard: neck strap; lectern: podium; cubicle: office booth; intercom: door phone; turnstile: entry barrier;
paper tray: document tray; flip chart: flipboard; laminator: laminating machine; oscilloscope: scope;
multimeter: volt meter; soldering iron: soldering tool; air compressor: compressed air machine;
angle grinder: disc grinder; lathe: turning machine; belt sander: sanding machine; welding mask: welding helmet;
allen key: hex key; ratchet strap: tie down strap; jack stand: axle stand; sawhorse: trestle; anvil: smith's block;
grease gun: lubricator; cable reel: cord reel; hydraulic jack: car jack; work light: site lamp;
pallet jack: pallet truck; jerrycan: fuel canister; manhole cover: sewer lid; guardrail: crash barrier;
gazebo: pavilion; trellis: lattice; compost heap: compost pile; weather vane: wind vane; bird bath: bird basin;
leaf blower: garden blower; hedge trimmer: hedge clippers; wood chipper: mulcher; speed bump: speed hump;
bus shelter: bus stop; solar panel: photovoltaic panel
"""
PAIRS = tuple(
    (name.strip(), other.strip())
    for name, other in (pair.split(":") for pair in _PAIRS.replace("\n", " ").split(";"))
)
"""40 labels that are there, and another word for each."""
_ABSENT = """
fax machine, typewriter, time clock, coat locker, paper cutter, label maker, barcode reader, door badge reader,
conference camera, desk fan grille, hot plate, spray booth, band saw, drill press, milling machine, plasma cutter,
vacuum pump, nail gun, heat gun, torque wrench, caliper, micrometer, soldering paste, wire stripper, crimping tool,
glue gun, rivet gun, tap and die set, engine hoist, tire changer, oil drain pan, sandblaster, kiln, forge, bellows,
scaffold, cement mixer, excavator, bulldozer, crane, road roller, wind turbine, water tower, silo, well, scarecrow,
beehive, bird feeder, sundial, garden gnome, sandbox, seesaw, climbing frame, goal post, bike rack, taxi stand, toll
booth, railway crossing, buoy, anchor
"""
ABSENT = tuple(name.strip() for name in _ABSENT.replace("\n", " ").split(","))
"""60 things that are not there, many of them beside what is."""


def main() -> int:
    """Print how many other words are found and how many absent things refused."""
    embedder = load_embedder()
    least = thresholds.of_model("all-MiniLM-L6-v2").label
    labels = [label for label, _ in PAIRS]
    asked = [other for _, other in PAIRS] + list(ABSENT)
    cosines = np.asarray(embedder.embed(asked)) @ np.asarray(embedder.embed(labels)).T
    fits = np.array(
        [
            [naming.fit(word, label, float(cosine), least) for label, cosine in zip(labels, row, strict=True)]
            for word, row in zip(asked, cosines, strict=True)
        ]
    )
    found = [bool(fits[i, i] > 0.0 and fits[i].argmax() == i) for i in range(len(PAIRS))]
    refused = [bool(row.max() <= 0.0) for row in fits[len(PAIRS) :]]
    held = [not (concepts.things(label) and concepts.things(other)) for label, other in PAIRS]
    unknown = [not concepts.things(name) for name in ABSENT]
    print(f"threshold {least}: found {np.mean(found):.3f} of {len(found)},", end=" ")
    print(f"refused {np.mean(refused):.3f} of {len(refused)}")
    print(f"not in concepts: found {np.mean(np.array(found)[held]):.3f} of {sum(held)},", end=" ")
    print(f"refused {np.mean(np.array(refused)[unknown]):.3f} of {sum(unknown)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
