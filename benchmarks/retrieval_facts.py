"""Sentences of the simulated home, each with a question that another person would put in other words.

A template is (statement, question, values): `{p}` is a person, `{v}` one of the values. The same template is told of
several persons with different values, so that the name and the value are what tells one fact from another.
"""

from __future__ import annotations

PERSONS = (
    "Anna", "Ben", "Clara", "David", "Elena", "Felix", "Grace", "Hugo", "Irene", "Jonas", "Karim", "Laura", "Marek",
    "Nadia", "Oscar", "Paula", "Quentin", "Rosa", "Stefan", "Tara",
)  # fmt: skip

TOLD = (
    (
        "{p} said that the dentist appointment is on {v}.",
        "When does {p} have to see the dentist?",
        ("Friday at four", "Monday morning", "the ninth of May", "Wednesday at noon"),
    ),
    (
        "{p} put the passport into the {v}.",
        "Where is the passport of {p}?",
        ("top drawer", "blue folder", "wall safe", "leather bag"),
    ),
    ("{p} is allergic to {v}.", "What is {p} allergic to?", ("peanuts", "shellfish", "strawberries", "sesame")),
    (
        "{p} hid the spare key under the {v}.",
        "Under what is the extra key of {p}?",
        ("flower pot", "door mat", "garden stone", "window sill"),
    ),
    (
        "{p} asked for a reminder to call the {v}.",
        "Whom does {p} want to phone?",
        ("insurance company", "electrician", "landlord", "piano tuner"),
    ),
    (
        "{p} takes the {v} every evening before bed.",
        "What medicine does {p} need at night?",
        ("blood pressure pills", "cough syrup", "iron tablets", "eye drops"),
    ),
    (
        "{p} wants the thermostat at {v} degrees at night.",
        "How many degrees does {p} want at night?",
        ("seventeen", "nineteen", "twenty one", "fifteen"),
    ),
    (
        "The favourite song of {p} is about a {v}.",
        "What is the favourite song of {p} about?",
        ("lonely whale", "summer train", "paper moon", "broken clock"),
    ),
    (
        "{p} ordered a {v} which should arrive next week.",
        "What delivery is {p} waiting for?",
        ("desk lamp", "garden hose", "toaster", "rain coat"),
    ),
    (
        "{p} lent the {v} to the neighbour.",
        "What did {p} give to the people next door?",
        ("electric drill", "folding ladder", "picnic blanket", "cake tin"),
    ),
    (
        "The wireless password of {p} begins with {v}.",
        "How does the wireless password of {p} begin?",
        ("kestrel", "marble", "tundra", "velvet"),
    ),
    (
        "{p} plants {v} on the balcony this year.",
        "What does {p} grow on the balcony?",
        ("tomatoes", "lavender", "basil", "sunflowers"),
    ),
    (
        "{p} has to hand in the {v} by the end of the month.",
        "What paper does {p} need to finish soon?",
        ("tax return", "thesis chapter", "visa form", "budget plan"),
    ),
    (
        "{p} likes coffee with {v}.",
        "How does {p} take the coffee?",
        ("oat milk", "two sugars", "a pinch of cinnamon", "cold cream"),
    ),
    (
        "{p} parks the car {v}.",
        "Where is the car of {p} parked?",
        ("behind the bakery", "on level three", "near the river", "in front of the school"),
    ),
    (
        "The birthday present for {p} is a {v}.",
        "What will {p} get for the birthday?",
        ("telescope", "silk scarf", "chess set", "mountain bike"),
    ),
    (
        "{p} learns to play the {v}.",
        "Which instrument does {p} practise?",
        ("cello", "trumpet", "harmonica", "accordion"),
    ),
    ("{p} is afraid of {v}.", "What scares {p}?", ("spiders", "thunder", "heights", "big dogs")),
    (
        "{p} flies to {v} in the summer.",
        "Where does {p} go in the summer?",
        ("Lisbon", "Reykjavik", "Nairobi", "Montreal"),
    ),
    (
        "The school project of {p} is about {v}.",
        "What is the project of {p} for school?",
        ("volcanoes", "honey bees", "the Vikings", "solar power"),
    ),
    (
        "{p} broke the {v} while cleaning.",
        "What did {p} damage by accident?",
        ("crystal vase", "picture frame", "tea pot", "table mirror"),
    ),
    (
        "{p} keeps the winter boots in the {v}.",
        "Where are the winter boots of {p}?",
        ("attic box", "cellar shelf", "garage cupboard", "hall bench"),
    ),
    (
        "{p} feeds the {v} twice a day.",
        "Which animal does {p} look after?",
        ("tortoise", "parrot", "hamster", "goldfish"),
    ),
    (
        "{p} wears glasses only for {v}.",
        "When does {p} put on glasses?",
        ("driving", "reading", "sewing", "the cinema"),
    ),
    ("Parcel {v} is meant for {p}.", "Who gets parcel {v}?", ("RX-4471", "KD-9023", "LM-1187", "TZ-6650")),
    (
        "The locker of {p} at the gym is number {v}.",
        "Which number has the gym locker of {p}?",
        ("214", "87", "1033", "356"),
    ),
    ("{p} sits in row {v} of the concert hall.", "Who has a seat in row {v}?", ("F12", "B7", "K31", "D4")),
    (
        "{p} saved the invoice {v} on the old computer.",
        "Where is invoice {v} of {p}?",
        ("2207", "4518", "9036", "7741"),
    ),
)

HAPPENED = (
    (
        "The doorbell rang and {p} took a parcel from the {v}.",
        "When did {p} receive a package from the {v}?",
        ("book shop", "shoe store", "pharmacy", "toy maker"),
    ),
    (
        "{p} spilled {v} on the carpet.",
        "When did {p} make a stain with {v}?",
        ("red wine", "orange juice", "tomato soup", "ink"),
    ),
    (
        "{p} changed the battery of the {v}.",
        "At what time was the {v} given new power by {p}?",
        ("smoke alarm", "wall clock", "remote control", "door sensor"),
    ),
    (
        "{p} dropped a {v} and it shattered.",
        "When did {p} let a {v} fall to pieces?",
        ("wine glass", "dinner plate", "jam jar", "soup bowl"),
    ),
    (
        "{p} watered the {v} with the small can.",
        "When did {p} give the {v} something to drink?",
        ("fern", "orchid", "cactus", "palm tree"),
    ),
    (
        "{p} repaired the {v} with a screwdriver.",
        "When was the {v} fixed by {p}?",
        ("loose handle", "squeaky hinge", "bath tap", "shelf bracket"),
    ),
    (
        "{p} argued on the phone about the {v}.",
        "When was {p} angry in a call about the {v}?",
        ("water bill", "late train", "roof repair", "lost suitcase"),
    ),
    (
        "{p} baked a {v} in the oven.",
        "When did {p} make a {v}?",
        ("cheese cake", "loaf of rye bread", "cherry pie", "pizza"),
    ),
    (
        "{p} carried the {v} out to the street.",
        "When did {p} bring the {v} outside?",
        ("old mattress", "recycling bin", "broken chair", "bag of leaves"),
    ),
    (
        "{p} let the {v} into the house.",
        "When did the {v} come in because of {p}?",
        ("plumber", "grandmother", "postman", "window cleaner"),
    ),
    (
        "{p} measured the {v} with a tape.",
        "When did {p} find out how long the {v} is?",
        ("curtain rail", "bed frame", "kitchen counter", "stair rail"),
    ),
    (
        "{p} lit a {v} and put it on the shelf.",
        "When did {p} set fire to the {v}?",
        ("vanilla candle", "oil lamp", "paper lantern", "incense stick"),
    ),
    (
        "{p} painted the {v} with a wide brush.",
        "When did {p} give the {v} a new colour?",
        ("window shutter", "garden fence", "bird house", "wooden stool"),
    ),
    (
        "{p} searched for the {v} for half an hour.",
        "When was {p} looking for the {v}?",
        ("reading glasses", "car key", "library card", "silver ring"),
    ),
)

OPENINGS = (
    "Good morning, did you sleep well after that long film?", "Oh, before I forget it again.",
    "You know what I heard at work?", "Sorry that I am late, the bus did not come.",
    "I have been thinking about the weekend.", "Wait a second, the kettle is hot.",
    "Thanks for cooking last night, it was lovely.", "The weather has been terrible since Sunday.",
    "I met our old teacher today.", "Listen, there is one more thing.", "My back hurts from all that gardening.",
    "Have you seen the news about the bridge?", "What a day, I need to sit down.",
    "The children were so loud this afternoon.", "I finally finished the long novel.",
    "Can you turn the music down a little?",
)  # fmt: skip
CLOSINGS = (
    "Anyway, how was your meeting?", "And please remind me to buy milk.", "Shall we go for a walk after dinner?",
    "I will tell you the rest tomorrow.", "Did you call your mother yet?", "The dog needs to go out soon.",
    "By the way, the neighbours are having a party.", "I should really start running again.",
    "Let us watch the match tonight.", "I wonder what we could cook on Saturday.",
    "Somebody left the light on in the cellar.", "The train tickets are far too expensive.",
    "We should visit the museum one day.", "I am so looking forward to spring.",
    "The new shop on the corner is quite good.", "Maybe it will snow again next week.",
)  # fmt: skip

HABITS = (
    ("{p} is reading a newspaper in the {room}.", "When was {p} last seen with the daily press in the {room}?"),
    ("{p} is doing yoga on a mat in the {room}.", "When did {p} last exercise in the {room}?"),
    ("{p} is typing on a laptop in the {room}.", "When did {p} last work at the computer in the {room}?"),
    ("{p} is folding laundry in the {room}.", "When did {p} last sort clean clothes in the {room}?"),
    ("{p} is sleeping under a blanket in the {room}.", "When was {p} last taking a nap in the {room}?"),
    ("{p} is eating an apple in the {room}.", "When did {p} last have fruit in the {room}?"),
    ("{p} is playing cards in the {room}.", "When did {p} last play a game in the {room}?"),
    ("{p} is brushing the dog in the {room}.", "When did {p} last groom the pet in the {room}?"),
)

TASKS = (
    "water the plants", "collect the laundry", "tidy the toys", "check the windows", "deliver the mail",
    "look for the cat", "inspect the heating", "dust the shelves", "bring the medicine", "count the chairs",
    "guard the entrance", "empty the bins", "carry the groceries", "vacuum the carpets", "set the table",
    "greet the visitors", "test the lamps", "map the cellar", "fetch the slippers", "record the noise",
    "patrol for smoke", "clean the bath", "find the remote", "close the blinds",
)  # fmt: skip

MANY = (
    "chair", "potted plant", "book", "lamp", "pillow", "bottle", "shoe", "picture", "bowl", "box",
)  # fmt: skip
SINGLE = (
    "refrigerator", "oven", "bicycle", "piano", "washing machine", "television", "bed", "sofa", "vacuum cleaner",
    "suitcase", "guitar", "umbrella", "microwave", "printer", "sewing machine", "ironing board", "toolbox",
    "aquarium", "telescope", "toaster", "cradle", "drum", "globe", "skateboard", "typewriter", "wheelchair",
    "easel", "accordion", "helmet", "anchor", "teddy bear", "kite", "football", "backpack", "clock", "bathtub",
    "fan", "ladder", "stroller", "canoe",
)  # fmt: skip
ROOMS = (
    "kitchen", "living room", "bedroom", "bathroom", "study", "hallway", "garage", "nursery",
)  # fmt: skip
