"""Other names and absent things that retrieval/concepts.py was not written for; on them the threshold was chosen.

Things of an office, a workshop and the outdoors, written down after the vocabulary; see naming.py.
"""

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
