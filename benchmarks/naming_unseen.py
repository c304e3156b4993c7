"""Other names and absent things that nothing was tuned on; see naming.py.

They were written down before the rule for names outside the vocabulary was changed. Things of a home, an office, a
warehouse and a garden. No name of a pair, and no absent name, is in retrieval/concepts.py; a test keeps it so.
"""

_PAIRS = """
lint roller: lint remover; laundry line: clothesline; draught excluder: door draft stopper; spice rack: spice holder;
baby gate: safety gate; dish rack: dish drainer; litter tray: cat litter box; pet carrier: cat carrier;
music stand: sheet music holder; vanity table: dressing table;
fax machine: telefax; badge reader: card reader; standing desk: height adjustable desk; mail tray: letter tray;
desk organizer: pencil holder; cable duct: wire channel; phone booth: telephone box; water jug: carafe;
conference phone: speakerphone; coat locker: garment locker;
reach truck: high reach forklift; stretch wrap: plastic film; packing table: packaging station;
barcode scanner: barcode reader; loading ramp: dock ramp; roll cage: roll container; wheel chock: wheel stop;
eye wash station: eyewash; spill kit: absorbent kit; weighbridge: truck scale;
bird feeder: bird table; pruning shears: secateurs; rain barrel: water butt; paving slab: paver;
sun lounger: deck chair; string trimmer: weed whacker; plant stake: garden cane; garden gnome: lawn dwarf;
lawn roller: grass roller; potting soil: compost
"""
_ABSENT = """
popcorn maker, deep fryer, rice cooker, bread bin, egg timer, cake stand, gramophone, harp, sauna, dartboard, bassinet,
cuckoo clock, foosball table, air purifier, trampoline,
time clock, typewriter, overhead projector, name plate, suggestion box, guillotine cutter, label printer, hand
sanitizer dispenser, umbrella stand, podium, flip chart, beanbag sofa, metal detector, turnstile, neck pillow,
scissor lift, overhead crane, tow tractor, strapping machine, packing peanuts, hand winch, bale press, fork extension,
dock leveler, cargo net, oil drum, gas cylinder, welding torch, floor scrubber, air compressor,
chicken coop, hedge trimmer, leaf blower, bird bath, sundial, garden arch, beehive, well pump, snow blower, fire pit,
scarecrow, lawn flamingo, gravestone, hot air balloon, totem pole
"""


def _names(text: str, divider: str) -> list[str]:
    return [" ".join(name.split()) for name in text.split(divider)]


PAIRS = tuple((label, other) for label, other in (_names(pair, ":") for pair in _PAIRS.split(";")))
"""40 labels that are there, and another word for each."""
ABSENT = tuple(_names(_ABSENT, ","))
"""60 things that are not there, near and far."""
