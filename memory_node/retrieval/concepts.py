"""Everyday things and the names they go by, so that "couch" finds the sofa and "oven" does not find the fridge.

Sentence embeddings put what belongs together near each other (oven and fridge) as readily as what is the same (couch
and sofa): no cosine separates the two, see `thresholds`. So the words that people and detectors use most are written
down here: names of one thing are divided by slashes, things by semicolons. A name may stand with several things.
"""

from __future__ import annotations

from functools import cache

_THINGS = """
refrigerator / fridge / icebox / fridge freezer; freezer / deep freezer; oven / stove / cooker; stove / cooker /
cooktop / hob / range / gas stove; microwave / microwave oven; dishwasher / dish washer; sink / washbasin / basin /
wash basin / kitchen sink; faucet / tap / water tap; kettle / tea kettle / electric kettle; teapot; toaster; blender /
mixer / liquidizer; food processor; coffee machine / coffee maker / espresso machine; pan / frying pan / skillet; pot
/ saucepan / cooking pot; wok; knife / kitchen knife; fork; spoon; chopsticks / chopstick; spatula / turner; ladle;
grater; whisk / eggbeater; rolling pin; colander / strainer / sieve; corkscrew; bottle opener; can opener / tin
opener; plate / dish / dinner plate; bowl / soup bowl; saucer; cup / mug / coffee cup / coffee mug / teacup; glass /
drinking glass / tumbler; wine glass / goblet; bottle / flask / water bottle; thermos / vacuum flask / flask; jug /
pitcher; jar; can / tin / tin can; tray / serving tray; cutlery / silverware / flatware; crockery / tableware /
dishes; cutting board / chopping board; baking tray / baking sheet; apron; oven mitt / oven glove; napkin / serviette;
tablecloth / table cloth; tea towel / dish towel / dishcloth; lunch box / lunchbox; cupboard / cabinet / kitchen
cabinet; pantry / larder; counter / countertop / worktop / kitchen counter; range hood / extractor hood / cooker hood;
high chair / highchair; wine rack;

sofa / couch / settee / divan / loveseat; armchair / easy chair / recliner; chair / seat; office chair / swivel chair
/ desk chair; rocking chair / rocker; stool / bar stool; footstool / ottoman / pouffe; bench; bean bag / beanbag;
table; dining table / dinner table; coffee table; desk / writing desk / office desk; side table / end table; bookshelf
/ bookcase / book shelf; shelf / rack / shelves / shelving; sideboard / buffet / credenza; drawer; fireplace / hearth;
rug / carpet / mat; doormat / door mat; curtain / drapes / drape; blind / blinds / window blind / window shade; pillow
/ cushion / throw pillow; blanket / throw; quilt / duvet / comforter; mattress; sheet / bed sheet; bed / double bed;
bunk bed; crib / cot / baby bed; wardrobe / closet / armoire; dresser / chest of drawers; nightstand / bedside table /
night table; mirror / looking glass; hanger / coat hanger; coat rack / coat stand / hat stand; lamp / light / table
lamp; floor lamp / standing lamp; chandelier; light bulb / lightbulb / bulb; candle; vase / flower vase; picture /
painting; picture frame / photo frame; photograph / photo; clock / wall clock; alarm clock; potted plant / houseplant
/ pot plant / house plant / plant; aquarium / fish tank; ashtray; globe; statue / sculpture; television / tv / telly /
tv set / television set; remote control / remote / tv remote; radio; speaker / loudspeaker; record player / turntable;
game console / video game console; piano; guitar; violin / fiddle; drum; toy; doll; teddy bear / stuffed bear / teddy
/ plush toy; ball; football / soccer ball; kite; jigsaw puzzle / jigsaw / puzzle; chessboard / chess board;

computer / pc / desktop computer; laptop / notebook computer / laptop computer / portable computer; notebook / notepad
/ writing pad; monitor / computer screen / screen / display / computer monitor; keyboard / computer keyboard; mouse /
computer mouse; tablet / tablet computer / ipad; printer; scanner; photocopier / copier / copy machine; shredder /
paper shredder; projector / beamer; whiteboard / dry erase board; blackboard / chalkboard; notice board / bulletin
board / pinboard; telephone / phone / landline; cell phone / mobile phone / smartphone / mobile / cellphone / phone;
headphones / headset / earphones; microphone / mic; webcam; camera; security camera / surveillance camera / cctv
camera; usb stick / flash drive / thumb drive / memory stick; charger / phone charger; router / wifi router; server;
server rack; calculator; pen / ballpoint pen / biro; pencil; marker / felt tip pen / felt pen; eraser / rubber; ruler;
scissors / shears; stapler; hole punch; paper clip / paperclip; sticky note / post-it note; tape /
adhesive tape / sticky tape; glue / adhesive; envelope; paper / sheet of paper; folder / binder / ring binder; filing
cabinet / file cabinet; book; magazine; newspaper / paper; calendar; badge / id card / name tag; water cooler / water
dispenser; vending machine;

backpack / rucksack / knapsack; suitcase / luggage / travel bag / baggage / trunk; briefcase / attache case; handbag /
purse / pocketbook; bag; shopping bag / tote bag / carrier bag; wallet / billfold; umbrella; parasol / sunshade; hat;
cap / baseball cap; helmet / hard hat; glasses / spectacles / eyeglasses; sunglasses / shades; watch / wristwatch;
necklace; ring; earring; scarf; glove / gloves; sock / socks; shoe / shoes / footwear; boots / boot; sneakers /
trainers / running shoes / sneaker; slippers / slipper; shirt; t-shirt / tee shirt / tee; sweater / jumper / pullover;
jacket / coat; trousers / pants; jeans; shorts; skirt; dress / frock; suit; belt; tie / necktie; pajamas / pyjamas;
swimsuit / bathing suit; diaper / nappy; pacifier / dummy; keys / key;

toilet / lavatory / wc / loo / commode; bathtub / tub / bath; shower; shower curtain; towel / bath towel; towel rack /
towel rail; soap; shampoo; toothbrush; toothpaste; comb; hairbrush / hair brush; hair dryer / hairdryer / blow dryer;
razor / shaver; toilet paper / toilet roll; tissue / tissues / kleenex; bathroom scale / scales / weighing scale /
scale; medicine cabinet; perfume / fragrance; nail clippers; sponge; plunger; toilet brush; washing machine / washer /
clothes washer; dryer / tumble dryer / clothes dryer; laundry basket / hamper / laundry hamper; iron / clothes iron;
ironing board; sewing machine; basket;

trash can / garbage bin / waste bin / rubbish bin / dustbin / garbage can / wastebasket / bin / trash bin / waste
paper basket / waste container; recycling bin / recycle bin; dumpster / skip; trash bag / garbage bag / bin bag / bin
liner; broom / brush; mop; bucket / pail; dustpan; vacuum cleaner / hoover / vacuum; duster / feather duster;
detergent / washing powder / laundry detergent; door / doorway; window; stairs / staircase / stairway / steps;
elevator / lift; escalator / moving stairs; wall; floor; ceiling; socket / power outlet / electrical outlet / wall
socket / outlet; switch / light switch; extension cord / extension lead; cable / wire / cord; plug; fan / ventilator;
radiator / heater; space heater / electric heater; air conditioner / aircon / ac unit; thermostat; humidifier;
dehumidifier; smoke detector / smoke alarm; fire extinguisher; first aid kit; exit sign / emergency exit sign;
doorbell; padlock / lock; safe / strongbox; charging station / charging dock / docking station / charger; robot; box /
carton / cardboard box; crate; parcel / package; pallet; barrel / keg; container; toolbox / tool box; workbench / work
bench; hammer; screwdriver; wrench / spanner; pliers; drill / power drill; saw / handsaw; chainsaw / chain saw; axe /
hatchet; chisel; tape measure / measuring tape; spirit level; vise / clamp; nail; screw; bolt; rope; chain; hook;
paintbrush / paint brush; paint can / paint tin; crowbar; flashlight / torch; battery; generator; ladder / stepladder;
forklift / fork lift; hand truck / trolley / dolly; shopping cart / shopping trolley / cart; conveyor belt; safety
vest / high visibility vest; safety goggles / protective glasses; wheelchair; walker / walking frame; crutch /
crutches; cane / walking stick; stretcher / gurney; syringe; thermometer; pill / tablet; medicine / medication /
drugs; oxygen tank / oxygen cylinder;

car / automobile; truck / lorry; van / minivan; pickup / pickup truck; bus; coach; taxi / cab; ambulance; fire truck /
fire engine; police car; bicycle / bike / push bike / cycle; motorcycle / motorbike; scooter / moped; skateboard;
train; tram / streetcar; boat / ship; airplane / aeroplane / plane / aircraft; helicopter / chopper; tractor; trailer;
traffic light / traffic signal / stoplight; street light / streetlight / lamppost / street lamp; stop sign; traffic
sign / road sign; traffic cone / road cone / cone; fire hydrant / hydrant; parking meter; mailbox / letterbox / post
box / postbox; bollard; fence; gate; wall; hedge; bush / shrub; tree; flower / blossom; grass / lawn; stone / rock;
pond; fountain; tent; picnic table; barbecue / grill / bbq; swing; slide; hammock; lawnmower / lawn mower / mower;
wheelbarrow; shovel / spade; rake; hose / garden hose; watering can; sprinkler; greenhouse / hothouse; shed; garage;
sidewalk / pavement / footpath; road / street; bridge; flagpole; billboard / hoarding; stroller / pram / pushchair /
baby carriage / buggy; person / human / pedestrian / people; man; woman; child / kid; baby / infant; boy; girl; doctor
/ physician; nurse; policeman / police officer / cop; dog / puppy; cat / kitten; bird; horse; cow; sheep; pig; rabbit
/ bunny; chicken / hen; duck; fish; mouse; elephant; bear; zebra; giraffe;

apple; banana; orange; lemon; grape / grapes; strawberry; tomato; potato / spud; carrot; onion; cucumber; eggplant /
aubergine; zucchini / courgette; bread / loaf; sandwich; pizza; cake; donut / doughnut; cookie / biscuit; candy /
sweets; chocolate; french fries / chips / fries; crisps / chips; cereal; cheese; egg; milk; yogurt / yoghurt; butter;
salt; pepper; sugar; ketchup / catsup; soda / soft drink / soda can; juice; coffee; tea; beer; wine; hot dog;
hamburger / burger; meat; popcorn; submarine; rocket; satellite; castle; lighthouse; windmill; volcano; tank; cannon;
telescope; spaceship / spacecraft
"""
_ROOMS = """
kitchen; living room / lounge / sitting room; bedroom; bathroom / restroom /
washroom / toilet; hallway / corridor / hall; office; dining room; laundry room / utility room; basement / cellar;
attic / loft; balcony; terrace / patio; garden / yard / backyard; entrance / lobby / foyer; meeting room / conference
room; warehouse; workshop
"""
_HOMONYMS = """
trunk mobile display screen shades shade range tin can seat lift hall light tap glass rubber ring throw mat remote
skip steps tie suit cap scale iron washer dish counter basin board marker folder paper badge case speaker mouse tablet
buffet rock cycle coach cone tank slide swing watch dummy cot saw drill plug fan
"""
HOMONYMS = frozenset(_HOMONYMS.split())
"""Names that are as often said of something else."""


@cache
def groups() -> tuple[tuple[str, ...], ...]:
    """Return the names of each thing, normalised, the commonest first; rooms come last."""
    return _parsed(_THINGS) + _parsed(_ROOMS)


def _parsed(text: str) -> tuple[tuple[str, ...], ...]:
    things = (thing.split("/") for thing in text.split(";"))
    return tuple(tuple(" ".join(name.replace("-", " ").split()) for name in names) for names in things)


@cache
def _numbers() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, names in enumerate(groups()):
        for name in names:
            found.setdefault(name, set()).add(number)
    return {name: frozenset(numbers) for name, numbers in found.items()}


def things(name: str) -> frozenset[int]:
    """Return the things that a normalised name, or its singular, may mean, as numbers; none when it isn't known."""
    numbers = _numbers()
    for form in (name, *_singulars(name)):
        if form in numbers:
            return numbers[form]
    return frozenset()


def is_room(name: str) -> bool:
    """Tell whether a normalised name means a kind of room, which what stands in it tells as well as its name does."""
    return any(name in names for names in _parsed(_ROOMS))


def names(name: str) -> list[str]:
    """Return all names of the things that a name may mean, itself first; only itself when it isn't known."""
    meant = things(name)
    return [name, *(other for other, numbers in _numbers().items() if numbers & meant and other != name)]


def same_word(a: str, b: str) -> bool:
    """Tell whether two names are the same but for a plural."""
    return a == b or a in _singulars(b) or b in _singulars(a)


def _singulars(name: str) -> list[str]:
    forms = []
    if name.endswith("s") and not name.endswith("ss") and len(name) > 3:
        forms.append(name[:-1])
    if name.endswith(("ches", "shes", "sses", "xes")):
        forms.append(name[:-2])
    if name.endswith("ies"):
        forms.append(name[:-3] + "y")
    if name.endswith("ves"):
        forms += [name[:-3] + "f", name[:-3] + "fe"]
    return forms
