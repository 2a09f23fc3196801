#!/usr/bin/env python3
"""Writes harbour.txt: days of an invented harbour, for the language models of `experiments/`.

All sentences were written for this repository. The same text comes out on every machine: the numbers
are those of a small generator of its own, not of Python's `random`.
"""

from pathlib import Path

SIZE = 90_000


class Draw:
    """A linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit

    def of(self, items):
        return items[self.below(len(items))]


DRAW = Draw(2024)

PEOPLE = [
    ("Marta", "she", "her", "the ferrywoman"),
    ("Old Bram", "he", "his", "the lamp keeper"),
    ("Ines", "she", "her", "the sailmaker"),
    ("Tobias", "he", "his", "the baker"),
    ("Wilhelmina", "she", "her", "the schoolteacher"),
    ("Piet", "he", "his", "the net mender"),
    ("Doctor Roon", "he", "his", "the doctor"),
    ("Greta", "she", "her", "the girl from the mill"),
    ("Jonas", "he", "his", "the pilot"),
    ("Aunt Sofie", "she", "her", "the woman who kept the inn"),
    ("Kaspar", "he", "his", "the cooper"),
    ("Lene", "she", "her", "the clerk of the customs house"),
]

WORDS = {
    "boat": ["the ferry", "the blue cutter", "a herring boat", "the pilot's gig", "the mail packet",
             "a barge of bricks", "the *Patience*", "the *Kittiwake*", "a schooner from the north"],
    "place": ["the quay", "the fish market", "the chapel wall", "the lower slip", "the salt shed",
              "the mill bridge", "the lighthouse steps", "the rope walk", "the inn", "the far bank",
              "the tide gauge", "the breakwater"],
    "thing": ["a coil of tarred rope", "a lantern with a cracked pane", "a basket of eels",
              "a letter without a stamp", "a brass compass", "two loaves and a jar of honey",
              "a sack of barley", "a roll of grey canvas", "the key of the boathouse",
              "a bundle of willow rods", "a tin of green paint", "a chart of the sandbanks",
              "a small iron bell", "a pair of oars"],
    "weather": ["fog", "a thin rain", "a hard east wind", "clear frost", "a warm haze", "sleet",
                "a steady breeze", "thunder far out", "snow that did not lie", "bright sun"],
    "bird": ["gulls", "terns", "a heron", "the geese", "two crows", "a line of cormorants"],
    "hour": ["before dawn", "at first light", "about nine", "at noon", "when the tide turned",
             "in the afternoon", "at dusk", "after supper", "when the lamps were lit",
             "close to midnight"],
    "num": ["two", "three", "four", "five", "six", "seven", "nine", "ten", "a dozen", "twenty"],
    "goods": ["salt", "coal", "apples", "lamp oil", "barley", "dried cod", "roof tiles", "timber",
              "wool", "sugar", "nails", "tea"],
    "mood": ["tired", "cheerful", "cross", "quiet", "pleased", "doubtful", "hungry", "calm",
             "curious", "stubborn"],
    "way": ["slowly", "at once", "without a word", "with great care", "as if it were nothing",
            "twice over", "by lamplight", "against the advice of everyone", "with both hands",
            "before anyone could ask"],
    "part": ["the rudder", "the mast", "the keel", "the hatch", "the anchor chain", "the tiller",
             "the fore sail", "the pump", "the bowsprit"],
    "damage": ["had split along the grain", "was green with rust", "would not hold paint",
               "had been mended too often", "creaked like a door", "was as good as new",
               "leaked a little in the cold", "had come loose in the night"],
    "sea": ["the sea", "the channel", "the river mouth", "the bay", "the outer bank", "the sound"],
    "look": ["as flat as slate", "the colour of pewter", "white to the horizon", "restless",
             "brown with rain", "so still that the masts stood twice", "green under the bridge",
             "full of broken ice"],
    "saying": [
        "A rope knows who tied it", "Nobody drowns in a boat that stays on land",
        "Fog is only the sea standing up", "The tide is never late, only we are",
        "Count the oars before you count the fish", "A borrowed anchor is the heaviest",
        "What the wind takes it seldom brings back", "Good bread forgives a bad day",
        "The lamp does not ask whose ship it is", "Paint hides a crack for one winter",
        "You cannot hurry a knot", "Every harbour is small from the sea",
    ],
    "question": [
        "Who left the gate of the lock open", "Is there any news from the north",
        "How long will the ice stay", "Did the packet bring the medicine",
        "Will you cross again today", "Where is the other oar", "What does the glass say",
        "Whose boat is that behind the breakwater", "How much is owed for the timber",
        "Have you seen my brother", "Why is the bell ringing", "Can the mast be saved",
    ],
    "answer": [
        "Not before Thursday", "Ask me when the wind has dropped", "It was there yesterday",
        "Only what the papers say", "As long as it likes", "Nobody knows, and nobody will say so",
        "Somewhere under the canvas", "I counted them myself", "More than it is worth",
        "You will hear it soon enough", "Yes, but not with that rope", "If the fog lets us",
    ],
}

OPENINGS = [
    "{hour:c} there was {weather} over {sea}, and {boat} lay at {place}.",
    "The day began with {weather}. {sea:c} was {look}.",
    "{weather:c} came in {hour}, and {place} was empty.",
    "For {num} days there had been {weather}, and nobody spoke of anything else.",
    "{sea:c} was {look}, and {bird} sat on {place}.",
    "It was the kind of morning when {bird} can be heard from {place} to {place}.",
    "{num:c} boats went out {hour}, and {num} came back with {goods}.",
]

DEEDS = [
    "{name} came down to {place} with {thing} and put it down {way}.",
    "{name} had promised to look at {part}, which {damage}.",
    "{hour:c} {name} walked from {place} to {place} and was {mood} all the way.",
    "{name} carried {thing} to {place}, because {it} had said that {it} would.",
    "{name}, {trade}, counted the sacks of {goods} {way} and wrote down {num}.",
    "{name} found {thing} behind {place}. Nobody had missed it.",
    "{name} sold {num} barrels of {goods} and bought {thing}.",
    "{name} said that {part} of {boat} {damage}, and {it} was right.",
    "{name} waited at {place} until {bird} came, and then {it} went home.",
    "{name} took {own} time. {it:c} mended the net {way}, and it held.",
    "{name} rowed {other} across {sea}, which was {look}, and asked for nothing.",
    "{name} lent {thing} to {other}, who gave it back {hour}.",
    "{name} was {mood}, for {own} letter had not come with {boat}.",
    "{name} lit the stove at {place}, and {num} people came in out of {weather}.",
    "{name} taught {other} the knot that holds in {weather}.",
    "{name} watched {bird} over {sea} and thought of the {goods} that had not come.",
    "If {name} had not seen it, {boat} would have struck {place} {hour}.",
    "{name} wanted to paint {place}, but there was {weather}.",
]

TALKS = [
    "\"{question}?\" asked {name}.\n\"{answer},\" said {other}.",
    "\"{saying},\" said {name}, and {other} laughed.",
    "\"{question}?\"\n\"{answer}.\"\n{name} nodded and looked at {sea}.",
    "\"{question}?\" {name} asked {hour}. {other} only shook {its} head.",
    "\"I need {thing},\" said {name}. \"{answer},\" said {other}, who was {mood}.",
    "{other} wanted to know what it would cost. \"{num:c} sacks of {goods},\" said {name}.",
    "\"{saying},\" {name} used to say. That day {it} did not say it.",
]

CLOSINGS = [
    "{hour:c} the lamp was lit, and {boat} came in under it.",
    "So the day ended, with {weather} over {sea} and {thing} left at {place}.",
    "{bird:c} flew over {place}. Then it was dark.",
    "Nobody slept well, for {part} of {boat} {damage}.",
    "In the book of the harbour there is one line about it: {num} boats, {weather}, no loss.",
    "{name} shut the door of {place}. \"{saying},\" {it} said to nobody.",
    "The tide went out as it always did, and {sea} was {look}.",
]

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December"]


def capital(text):
    return text[0].upper() + text[1:]


def fill(template, one, two, today):
    """Puts words in: no word twice, and the day's own weather and sea."""
    text, used = "", set()
    for at, piece in enumerate(template.replace("}", "{").split("{")):
        if at % 2 == 0:
            text += piece
            continue
        key, _, form = piece.partition(":")
        persons = {"name": one[0], "it": one[1], "own": one[2], "trade": one[3], "other": two[0],
                   "its": two[2], **today}
        word = persons.get(key)
        while word is None or (key not in persons and word in used):
            word = DRAW.of(WORDS[key])
        used.add(word)
        text += capital(word) if form == "c" else word
    return text


def paragraph(one, two, today):
    text, last, used = "", None, set()
    for _ in range(2 + DRAW.below(4)):
        if DRAW.below(4) == 0:
            one, two = two, one
        template = DRAW.of(DEEDS if DRAW.below(3) else TALKS)
        if template in used:
            continue
        used.add(template)
        # Whoever has just been named is "he" or "she".
        if last is one and template.startswith("{name} ") and DRAW.below(3):
            template = "{it:c}" + template[len("{name}"):]
        last = one if template in DEEDS or template.startswith("{it:c}") else None
        sentence = fill(template, one, two, today)
        starts_line = sentence.startswith('"') or "\n" in text[-60:]
        text += ("\n" if starts_line else " ") * bool(text) + sentence
    return text


def day(number, month):
    today = {"weather": DRAW.of(WORDS["weather"]), "sea": DRAW.of(WORDS["sea"])}
    one = DRAW.of(PEOPLE)
    two = DRAW.of([person for person in PEOPLE if person is not one])
    opening = fill(DRAW.of(OPENINGS), one, two, today)
    parts = [f"{month} {number}", opening + " " + paragraph(one, two, today)]
    for _ in range(DRAW.below(3)):
        one, two = two, DRAW.of([person for person in PEOPLE if person is not two])
        parts.append(paragraph(one, two, today))
    parts.append(fill(DRAW.of(CLOSINGS), one, two, today))
    return "\n\n".join(parts)


def main():
    text = "THE HARBOUR BOOK\n\nAn invented chronicle, generated for this repository by harbour.py.\n"
    number, month = 1, 0
    while len(text) < SIZE:
        text += f"\n{day(number, MONTHS[month % 12])}\n"
        number += 1 + DRAW.below(4)
        if number > 28:
            number, month = 1 + DRAW.below(3), month + 1
    Path(__file__).with_name("harbour.txt").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
