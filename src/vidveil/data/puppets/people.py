"""Who there is: face, build, hair, skin, clothes and gait of every person, drawn once and for all.

Nothing here knows the dial: `appearance.py` decides which of these cues a world shows. Traits are drawn independently
of each other, except that presentation as a woman or a man says something of hair, beard and skirts, as it must.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from vidveil.data.puppets.body import Build
from vidveil.data.puppets.style import Style
from vidveil.data.puppets.world import World

Colour = tuple[int, int, int]

CLOTH: tuple[Colour, ...] = (
    *((214, 40, 40), (240, 120, 30), (245, 200, 50), (150, 200, 50), (40, 150, 70), (20, 120, 120)),
    *((60, 180, 220), (40, 90, 200), (30, 40, 110), (120, 60, 180), (200, 60, 170), (250, 150, 190)),
    *((130, 30, 50), (120, 80, 45), (205, 175, 130), (240, 240, 235), (150, 150, 150), (40, 40, 45)),
    *((150, 220, 190), (185, 165, 235)),
)
SKIN: tuple[tuple[Colour, ...], tuple[Colour, ...]] = (
    ((250, 216, 190), (240, 196, 165), (232, 184, 148), (246, 205, 172), (226, 176, 145)),
    ((136, 84, 50), (112, 68, 42), (92, 54, 34), (124, 78, 56), (76, 46, 32)),
)
"""Lighter and darker, the value of the attribute `skin_colour`."""
HAIR: tuple[Colour, ...] = (
    *((25, 22, 24), (60, 38, 25), (110, 70, 35), (205, 165, 90), (240, 222, 160), (165, 60, 25), (150, 150, 155)),
    *((235, 235, 235), (60, 90, 200), (215, 80, 150), (60, 150, 100)),
)
SHORT_HAIR = ("short", "fringe", "crest", "flat")
LONG_HAIR = ("long", "tail", "bob", "curls")
PATTERNS = ("plain", "hoops", "bars", "checks", "halves", "sash", "band")
LEG_PATTERNS = ("plain", "hoops", "seam", "halves")


@dataclass(frozen=True, kw_only=True)
class Face:
    width: float
    eyes: float
    """Distance between them."""
    eye_size: float
    brows: float
    nose: float
    mouth: float
    iris: Colour
    beard: str
    """none, full, moustache or goatee"""
    lips: bool


@dataclass(frozen=True, kw_only=True)
class Outfit:
    number: int
    """Over all people."""
    nude: bool
    """Little on: the attribute `nudity`."""
    torso: Colour
    torso_2: Colour
    pattern: str
    emblem: int
    """0 none, 1 disc, 2 square, 3 triangle"""
    sleeves: Colour
    sleeves_2: Colour
    sleeve_pattern: str
    legs: Colour
    legs_2: Colour
    leg_pattern: str
    skirt: bool
    shoes: Colour
    hat: str
    """none, cap, beanie or band"""
    hat_colour: Colour


@dataclass(frozen=True, kw_only=True)
class Person:
    number: int
    dark: bool
    """Skin: the attribute `skin_colour`."""
    woman: bool
    """Presentation: the attribute `gender`."""
    skin: Colour
    face: Face
    hair: str
    hair_colour: Colour
    glasses: bool
    build: Build
    style: Style
    outfits: tuple[Outfit, ...]


def _pick(rng: np.random.Generator, options: tuple[Colour, ...]) -> Colour:
    """One of the options, a little off, so that no two people have exactly the same red."""
    base = options[int(rng.integers(len(options)))]
    red, green, blue = (int(np.clip(c + rng.normal(0, 7), 0, 255)) for c in base)
    return red, green, blue


def _apart(rng: np.random.Generator, options: tuple[Colour, ...], other: Colour) -> Colour:
    """A colour that is seen next to another one."""
    far = tuple(c for c in options if sum(abs(a - b) for a, b in zip(c, other, strict=True)) > 150)
    return _pick(rng, far)


def somebody(rng: np.random.Generator, number: int, *, dark: bool, woman: bool, nude: list[bool]) -> Person:
    """Someone with as many outfits as `nude` has entries, and one pair of shoes."""
    shoes = _pick(rng, CLOTH)
    style_of_hair = LONG_HAIR if woman else SHORT_HAIR
    beard = "none" if woman or rng.random() < 0.45 else str(rng.choice(["full", "moustache", "goatee"]))
    return Person(
        number=number,
        dark=dark,
        woman=woman,
        skin=_pick(rng, SKIN[dark]),
        face=Face(
            width=float(rng.uniform(0.8, 0.96)),
            eyes=float(rng.uniform(0.3, 0.46)),
            eye_size=float(rng.uniform(0.13, 0.19)),
            brows=float(rng.uniform(0.03, 0.09)),
            nose=float(rng.uniform(0.12, 0.3)),
            mouth=float(rng.uniform(0.2, 0.42)),
            iris=((40, 90, 160), (60, 110, 60), (90, 55, 25), (20, 16, 16))[int(rng.integers(4))],
            beard=beard,
            lips=woman and bool(rng.random() < 0.85),
        ),
        hair=str(rng.choice(style_of_hair)),
        hair_colour=_pick(rng, HAIR if number >= 0 else HAIR[:7]),
        glasses=bool(rng.random() < 0.3),
        build=_build(rng, woman),
        style=_style(rng),
        outfits=tuple(_outfit(rng, woman, little, shoes) for little in nude),
    )


def _build(rng: np.random.Generator, woman: bool) -> Build:
    tall, stout = rng.uniform(0.9, 1.08), rng.uniform(0.82, 1.28)
    legs, arms, wide = rng.uniform(0.93, 1.07), rng.uniform(0.93, 1.08), rng.uniform(0.92, 1.08)
    base = Build()
    return Build(
        upper_arm=base.upper_arm * tall * arms,
        forearm=base.forearm * tall * arms,
        thigh=base.thigh * tall * legs,
        shin=base.shin * tall * legs,
        torso=base.torso * tall,
        shoulders=base.shoulders * tall * wide * (0.93 if woman else 1.05),
        hips=base.hips * tall * (1.12 if woman else 0.95),
        head=base.head * float(rng.uniform(0.98, 1.06)),
        arm_width=base.arm_width * stout * (0.9 if woman else 1.05),
        leg_width=base.leg_width * stout,
        chest=base.chest * stout**0.7 * (0.94 if woman else 1.04),
        waist=base.waist * stout * (0.82 if woman else 1.05),
        depth=base.depth * stout,
    )


def _style(rng: np.random.Generator) -> Style:
    return Style(
        stride=float(rng.uniform(0.78, 1.22)),
        crouch=float(rng.uniform(0.0, 0.3)),
        stance=float(rng.uniform(0.0, 0.24)),
        bounce=float(rng.uniform(0.0, 0.3)),
        spring=float(rng.uniform(0.8, 2.4)),
        swing=float(rng.uniform(0.72, 1.28)),
        elbow=float(rng.uniform(0.05, 0.95)),
        carry=float(rng.uniform(0.04, 0.5)),
        slouch=float(rng.uniform(-0.1, 0.3)),
        sway=float(rng.uniform(0.0, 0.16)),
        bow=float(rng.uniform(-0.25, 0.4)),
        tempo=float(rng.uniform(0.82, 1.18)),
    )


def _outfit(rng: np.random.Generator, woman: bool, nude: bool, shoes: Colour) -> Outfit:
    torso, legs, sleeves = _pick(rng, CLOTH), _pick(rng, CLOTH), _pick(rng, CLOTH)
    return Outfit(
        number=-1,
        nude=nude,
        torso=torso,
        torso_2=_apart(rng, CLOTH, torso),
        pattern=str(rng.choice(PATTERNS)),
        emblem=int(rng.integers(4)),
        sleeves=sleeves,
        sleeves_2=_apart(rng, CLOTH, sleeves),
        sleeve_pattern=str(rng.choice(LEG_PATTERNS)),
        legs=legs,
        legs_2=_apart(rng, CLOTH, legs),
        leg_pattern=str(rng.choice(LEG_PATTERNS)),
        skirt=woman,
        shoes=shoes,
        hat=str(rng.choice(["none", "none", "cap", "beanie", "band"])),
        hat_colour=_pick(rng, CLOTH),
    )


def muted(outfit: Outfit, share: float) -> Outfit:
    """The same clothes, washed out by this share: people at the margin do not catch the eye."""

    def grey(colour: Colour) -> Colour:
        level = share * (sum(colour) / 3 * 0.5 + 64)
        red, green, blue = (int((1 - share) * c + level) for c in colour)
        return red, green, blue

    return replace(
        outfit,
        torso=grey(outfit.torso),
        torso_2=grey(outfit.torso_2),
        sleeves=grey(outfit.sleeves),
        sleeves_2=grey(outfit.sleeves_2),
        legs=grey(outfit.legs),
        legs_2=grey(outfit.legs_2),
        shoes=grey(outfit.shoes),
        hat_colour=grey(outfit.hat_colour),
    )


def _shares(rng: np.random.Generator, count: int, share: float) -> list[bool]:
    """Exactly that share of `count`, in random order: prevalences must not depend on luck."""
    return [bool(x) for x in rng.permutation(np.arange(count) < round(share * count))]


@lru_cache(maxsize=8)
def everybody(world: World) -> tuple[Person, ...]:
    """All people of a world: first those of train, then of val, then of test."""
    found: list[Person] = []
    outfits = 0
    for split, count in world.people().items():
        rng = world.stream(f"p-{split}")
        dark, woman = _shares(rng, count, 0.45), _shares(rng, count, 0.5)
        wardrobe = rng.integers(2, 4, count)
        nude = iter(_shares(rng, int(wardrobe.sum()), 0.42))
        for i in range(count):
            own = world.stream("person", len(found))
            little = [next(nude) for _ in range(int(wardrobe[i]))]
            person = somebody(own, len(found), dark=dark[i], woman=woman[i], nude=little)
            dressed = tuple(replace(outfit, number=outfits + k) for k, outfit in enumerate(person.outfits))
            outfits += len(dressed)
            found.append(replace(person, outfits=dressed))
    return tuple(found)
