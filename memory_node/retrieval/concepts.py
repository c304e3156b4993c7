"""Everyday things and the names they go by, so that "couch" finds the sofa and "oven" does not find the fridge.

Sentence embeddings put what belongs together near each other (oven and fridge) as readily as what is the same (couch
and sofa): no cosine separates the two, see `thresholds`. So the words that people and detectors use most are written
down here: names of one thing are divided by slashes, things by semicolons. A name may stand with several things.
"""

from __future__ import annotations

from functools import cache, lru_cache

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
scissors / shears; stapler; hole punch; paper clip / paperclip; sticky note / post-it note; tape / adhesive tape /
sticky tape; glue / adhesive; envelope; paper / sheet of paper; folder / binder / ring binder; filing cabinet / file
cabinet; book; magazine; newspaper / paper; calendar; badge / id card / name tag; water cooler / water dispenser;
vending machine;

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
box / postbox; bollard; fence; gate; hedge; bush / shrub; tree; flower / blossom; grass / lawn; stone / rock; pond;
fountain; tent; picnic table; barbecue / grill / bbq; swing; slide; hammock; lawnmower / lawn mower / mower;
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
telescope; spaceship / spacecraft;

measuring cup; measuring spoon; peeler / potato peeler / vegetable peeler; garlic press; mortar / mortar and pestle;
funnel; ice cube tray; ice bucket; cocktail shaker; coaster / drink mat; placemat / table mat; straw / drinking straw;
toothpick; pepper mill / pepper grinder; salt shaker / saltcellar; sugar bowl; butter dish; cake tin / baking tin;
casserole / casserole dish; pressure cooker; slow cooker; crock pot; waffle iron / waffle maker; juicer / juice
extractor; hot plate stand / trivet; kitchen scale / food scale; kitchen roll / paper towel / kitchen towel; aluminium
foil / tin foil / aluminum foil; cling film / plastic wrap / saran wrap; water filter; kitchen island; chaise longue /
chaise / daybed; futon / sofa bed; changing table; playpen / play pen; rocking horse; toy box / toy chest; building
blocks / toy blocks; jewelry box / jewellery box; music box; piggy bank / money box; figurine; trophy / trophy cup;
poster / placard; flag / banner; wreath; christmas tree / xmas tree; balloon; candlestick / candle holder; lantern;
lampshade / lamp shade; night light; doorknob / door knob / door handle / doorhandle; hinge; keyhole; peephole;
banister / handrail; skirting board / baseboard; vent / air vent; fuse box / breaker box; water heater / boiler; water
meter; gas meter; shower head / showerhead; toilet seat; bath mat / bathmat; shower cubicle / shower stall; hand
dryer; soap dispenser; soap dish; toothbrush holder; mouthwash; dental floss; shaving cream / shaving foam; shower gel
/ body wash; deodorant; lotion / body lotion; sunscreen / sun cream / sunblock; lipstick; nail polish / nail varnish;
cotton swab / cotton bud; bandage / plaster / band aid; hot water bottle; crochet hook; knitting needle; thread /
sewing thread; needle / sewing needle; button; zipper / zip; safety pin; clothespin / clothes peg / clothes pin;
clothes horse / drying rack / airer; washing line; shoe rack; shoehorn / shoe horn; shoelace / bootlace; litter box;
dog bed; dog leash / dog lead / leash; dog collar; bird cage / birdcage; pet bowl / dog bowl / food bowl; cat tree /
scratching post; kennel / doghouse / dog house; rabbit hutch / hutch; hamster cage;

clipboard; pushpin / thumbtack / drawing pin; rubber band / elastic band; highlighter; crayon / wax crayon; chalk;
sharpener / pencil sharpener; compass; protractor; set square; letter opener; stamp / rubber stamp; ink cartridge /
printer cartridge; toner / toner cartridge; desk pad / desk mat; mouse pad / mouse mat; laptop stand; monitor arm;
partition / room divider / divider screen; reception desk / front desk; wall planner; safe deposit box; cash register
/ till; cash box; credit card / bank card; coin; banknote / bill; receipt; passport; brochure / leaflet / pamphlet /
booklet; business card / visiting card; postcard; greeting card; map; dictionary; comic book; atlas; cookbook / recipe
book; photo album; diary / journal; e reader / ebook reader; game controller / gamepad / joystick; vr headset /
virtual reality headset; drone / quadcopter; smart speaker; subwoofer; amplifier; cd player; dvd player; video
recorder; camcorder / video camera; tripod; binoculars / field glasses; magnifying glass / magnifier; microscope;
power strip / power bar / multi socket; power bank; adapter / power adapter; motherboard / circuit board; hard drive /
hard disk; memory card / sd card; modem; network switch; antenna / aerial; satellite dish / dish antenna; megaphone /
bullhorn / loudhailer; walkie talkie / two way radio; emergency light; alarm bell / fire alarm; defibrillator / aed;
hand sanitizer; face mask / facemask / surgical mask; rubber glove / latex glove; stethoscope; hospital bed; drip
stand / iv pole / iv stand; bedpan; blood pressure monitor; hearing aid; inhaler; eye drops; test tube; beaker; petri
dish; pipette;

stacker / pallet stacker; order picker; tugger; storage bin / storage box; tote / plastic tote; packing tape / parcel
tape; tape dispenser; box cutter / utility knife / stanley knife; bubble wrap / air cushion film; shrink wrap;
strapping band; loading dock / loading bay; roller conveyor; roller door / roller shutter; scale platform / floor
scale; drum / steel drum; sandbag; tarpaulin / tarp; safety sign / warning sign; safety barrier / barrier; caution
tape / barrier tape; ear protection / ear muffs / ear defenders; safety shoes / safety boots; overalls / coveralls /
boiler suit; respirator / gas mask; knee pad; tool belt; tool cabinet / tool chest; sandpaper / emery paper; file /
metal file; plane / wood plane; mallet / rubber mallet; hacksaw; circular saw; table saw; sander; grinder; soldering
gun; nail puller; stud finder; level / water level; caulk / sealant; paint roller; paint tray; paint / wall paint;
varnish; wallpaper; brick; tile; plank / board of wood / timber; plywood; pipe / piping; gutter / rain gutter; wire
mesh; barbed wire; pulley; winch; scaffolding; wheel / tire / tyre; engine / motor; car battery; jumper cable / jump
lead; steering wheel; license plate / number plate; windshield / windscreen; headlight / headlamp; taillight / rear
light; bumper; spare wheel / spare tire; car seat / child seat; bicycle pump / bike pump; bicycle helmet / bike
helmet; bike lock; bicycle basket; roller skates / roller blades / rollerblades; sled / sleigh / sledge; ski / skis;
snowboard; surfboard; paddle / oar; canoe / kayak; life jacket / life vest; anchor rope; fishing rod / fishing pole;
tennis racket / racket; tennis ball; basketball; volleyball; baseball; baseball bat / bat; baseball glove / baseball
mitt; golf club; golf ball; frisbee / flying disc; dumbbell / hand weight; barbell; kettlebell; treadmill / running
machine; exercise bike / stationary bike; yoga mat / exercise mat; skipping rope / jump rope; punching bag / punch
bag; pool table / billiard table / snooker table; table tennis table / ping pong table; playing cards / deck of cards;
dice / die; board game; whistle; sleeping bag; air mattress / inflatable mattress; camping stove / gas cooker; cooler
/ cool box / ice chest / cooler box; pocket knife / penknife / swiss army knife; lighter / cigarette lighter; matches
/ matchbox; cigarette; gun / pistol / handgun / rifle; sword; handcuffs;

flower pot / flowerpot / plant pot; planter / plant container; window box / balcony box; hanging basket; cactus; palm
/ palm tree; fern; ivy; rose; tulip; sunflower; leaf / leaves; log / firewood; tree stump / stump; twig / branch; seed
bag; fertilizer / plant food; trowel / garden trowel / hand shovel; pitchfork / garden fork; hoe; pickaxe / pick;
lopper / loppers; hedge shears; edger; flower bed / flowerbed; lawn edging; sprinkler head; rain gauge; birdhouse /
bird house / nest box / nesting box; pergola; arbor / arbour; carport; driveway; stepping stone; sandpit / sand pit;
playground slide; climbing tower; swimming pool / pool; hot tub / jacuzzi / whirlpool; paddling pool / wading pool;
water pump; windsock; utility pole / telegraph pole / telephone pole; manhole; drain / storm drain; curb / kerb;
crosswalk / zebra crossing / pedestrian crossing; roundabout / traffic circle; phone box; kiosk / newsstand; market
stall / stall; atm / cash machine / cash dispenser; ticket machine; charging point / ev charger; gas pump / petrol
pump / fuel pump; gas station / petrol station; railway track / rail track / railroad track; platform; ferry; sailboat
/ sailing boat; motorboat / speedboat; container ship / cargo ship; barge; jet ski / water scooter; golf cart / golf
buggy; quad bike / atv; dirt bike; snowmobile; camper / camper van / motor home / rv; caravan / travel trailer;
limousine / limo; tow truck / breakdown truck; garbage truck / bin lorry / dustcart; delivery van; school bus; fire
escape; water tank / cistern; chimney / smokestack; roof; weathercock; bell; church; tower; cross / crucifix; grave /
tombstone / headstone; mountain; river; lake; beach; cloud; sun; moon;

avocado; pear; peach; plum; cherry; pineapple; watermelon; melon; mango; kiwi; lime; grapefruit; blueberry; raspberry;
pumpkin; corn / maize / sweetcorn; bell pepper / capsicum; chili / chilli / chili pepper; garlic; ginger; broccoli;
cauliflower; cabbage; lettuce; spinach; asparagus; mushroom; pea / peas; bean / beans; chickpea / garbanzo; lentil;
rice; pasta / noodles / spaghetti; flour; oil / cooking oil / olive oil; vinegar; mustard; mayonnaise / mayo; honey;
jam / jelly / marmalade; peanut butter; nut / nuts; raisin; sausage; bacon; ham; steak; salami; tuna; shrimp / prawn;
crab; lobster; soup; salad; sushi; taco; burrito; croissant; bagel; pretzel; muffin / cupcake; pancake; waffle; pie;
ice cream; chewing gum; water / mineral water; lemonade; smoothie / milkshake; champagne / sparkling wine; whiskey /
whisky; liquor / spirits;

parrot; pigeon / dove; owl; eagle; gull / seagull; goose; turkey; penguin; rooster / cock; goat; donkey; deer; fox;
wolf; lion; tiger; monkey; kangaroo; camel; squirrel; hedgehog; hamster; rat; snake; lizard; frog; turtle / tortoise;
crocodile / alligator; shark; whale; dolphin; bee; wasp; fly; spider; ant; butterfly; snail; worm;

bathrobe / dressing gown; blouse; cardigan; hoodie / hooded sweatshirt; sweatshirt; vest / waistcoat; raincoat /
waterproof jacket; leggings / tights; underwear / underpants; bra / brassiere; sandals / sandal; flip flops; high
heels; rubber boots / wellingtons / wellies; bow tie; brooch; bracelet / bangle; wig; crown; veil; mask; costume;
duffel bag / gym bag / sports bag; laptop bag; fanny pack / bum bag / belt bag; plastic bag; paper bag; gift; ribbon /
bow; gift wrap / wrapping paper
"""
_ROOMS = """
kitchen; living room / lounge / sitting room; bedroom; bathroom / restroom / washroom / toilet; hallway / corridor /
hall; office; dining room; laundry room / utility room; basement / cellar; attic / loft; balcony; terrace / patio;
garden / yard / backyard; entrance / lobby / foyer / reception; meeting room / conference room; warehouse /
storehouse; workshop; canteen / cafeteria; classroom / schoolroom; library; gym / fitness room; nursery / children's
room; storeroom / storage room / stockroom; study / home office; server room; loading area; break room / staff room;
hotel room; hospital room / patient room / ward; operating room / operating theatre; laboratory / lab; waiting room;
changing room / locker room / dressing room; stairwell; parking lot / car park; parking garage; shop / store;
supermarket; restaurant; pub; cafe / coffee shop; conservatory / sunroom / winter garden
"""
_HOMONYMS = """
trunk mobile display screen shades shade range tin can seat lift hall light tap glass rubber ring throw mat remote
skip steps tie suit cap scale iron washer dish counter basin board marker folder paper badge case speaker mouse tablet
buffet rock cycle coach cone tank slide swing watch dummy cot saw drill plug fan
"""
HOMONYMS = frozenset(_HOMONYMS.split())
"""Names that are as often said of something else."""
_IRREGULAR = {
    "people": "person", "men": "man", "women": "woman", "children": "child", "feet": "foot", "teeth": "tooth",
    "mice": "mouse", "geese": "goose", "oxen": "ox", "lenses": "lens", "dice": "die", "cacti": "cactus",
}  # fmt: skip
"""Plurals that no ending tells; firemen and policewomen end in one."""


@cache
def groups() -> tuple[tuple[str, ...], ...]:
    """Return the names of each thing, normalised, the commonest first; rooms come last."""
    return _parsed(_THINGS) + _parsed(_ROOMS)


def _parsed(text: str) -> tuple[tuple[str, ...], ...]:
    things = (thing.split("/") for thing in text.split(";"))
    return tuple(tuple(" ".join(name.replace("-", " ").split()) for name in names) for names in things)


@cache
def _rooms() -> frozenset[str]:
    return frozenset(name for names in _parsed(_ROOMS) for name in names)


@cache
def _numbers() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, names in enumerate(groups()):
        for name in names:
            found.setdefault(name, set()).add(number)
    return {name: frozenset(numbers) for name, numbers in found.items()}


@lru_cache(maxsize=4096)
def things(name: str) -> frozenset[int]:
    """Return the things that a normalised name, or its singular, may mean, as numbers; none when it isn't known."""
    numbers = _numbers()
    for form in (name, *singulars(name)):
        if form in numbers:
            return numbers[form]
    return frozenset()


def is_room(name: str) -> bool:
    """Tell whether a normalised name means a kind of room, which what stands in it tells as well as its name does."""
    return name in _rooms()


def names(name: str) -> list[str]:
    """Return all names of the things that a name may mean, itself first; only itself when it isn't known."""
    others = (other for thing in sorted(things(name)) for other in groups()[thing])
    return list(dict.fromkeys([name, *others]))


def other_names(name: str) -> list[str]:
    """Return the other names of what a name means, none of them said of something else as often: "sofa" of "couch"."""
    return [] if name in HOMONYMS else [other for other in names(name) if other != name and other not in HOMONYMS]


def same_word(a: str, b: str) -> bool:
    """Tell whether two names are the same but for a plural."""
    return a == b or a in singulars(b) or b in singulars(a)


@lru_cache(maxsize=4096)
def singulars(name: str) -> tuple[str, ...]:
    """Return what a name may be the plural of, "office chair" of "office chairs"; some of it is no word."""
    before, last = name[: name.rfind(" ") + 1], name[name.rfind(" ") + 1 :]
    forms = [before + one for many, one in _IRREGULAR.items() if last == many]
    forms += [name.removesuffix("men") + "man"] if last.endswith("men") and last not in _IRREGULAR else []
    if name.endswith("s") and not name.endswith("ss") and len(name) > 3:
        forms.append(name[:-1])
    if name.endswith(("ches", "shes", "sses", "xes", "oes", "uses")):
        forms.append(name[:-2])
    if name.endswith("ies"):
        forms.append(name[:-3] + "y")
    if name.endswith("ves"):
        forms += [name[:-3] + "f", name[:-3] + "fe"]
    return tuple(forms)
