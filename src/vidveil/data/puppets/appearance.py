"""What of a person a world shows: the cues of identity, the dial rho, and what each pixel may carry.

Joints define actions, so arms, legs and what they hold carry the action, while head and torso ride along. Hence two
families of cues. Where a cue is not personal everyone has the same:

    rho   still cues that are personal          moving cues that are personal
    0     all                                   none: all limbs look and move alike
    0.5   face, hair, torso                     legs, shoes, leg_gait
    1     none: one head, one plain shirt       all

The private attributes follow the cues. Skin shows on head and torso at rho 0, on limbs at rho 1, on both at 0.5; being
undressed is a bare torso at 0, bare arms and legs at 1, all of it at 0.5; a woman or a man shows in hair, face and
shape of the torso at 0, in skirt and shape of the legs at 1, in all of it at 0.5.

Posture (the spine's part of a style) moves head and torso, and is personal in the gait world alone.

Kinds of pixels, the ground truth:  0 neither   1 identity only   2 action only   3 both
"""

from dataclasses import dataclass, replace

from vidveil.data.puppets.body import Build
from vidveil.data.puppets.people import Colour, Face, Outfit, Person
from vidveil.data.puppets.style import ARM_STYLE, LEG_STYLE, Style, overdone

STILL = ("face", "hair", "complexion", "torso", "emblem", "headgear")
MOVING = ("sleeves", "legs", "shoes", "hands", "build", "leg_gait", "arm_gait")
PERSONAL: dict[float, frozenset[str]] = {
    0.0: frozenset(STILL),
    0.5: frozenset({"face", "hair", "torso", "legs", "shoes", "leg_gait"}),
    1.0: frozenset(MOVING),
}
NEITHER, IDENTITY, ACTION, BOTH = 0, 1, 2, 3

PLAIN_SKIN: Colour = (196, 150, 120)
PLAIN_TONES: tuple[Colour, Colour] = ((240, 198, 168), (108, 66, 42))
PLAIN_FACE = Face(
    width=0.84,
    eyes=0.38,
    eye_size=0.13,
    brows=0.05,
    nose=0.2,
    mouth=0.3,
    iris=(20, 16, 16),
    beard="none",
    lips=False,
)
PLAIN_SHIRT: Colour = (152, 156, 162)
PLAIN_SLEEVES: Colour = (112, 118, 128)
PLAIN_LEGS: Colour = (72, 76, 90)
PLAIN_SHOES: Colour = (36, 36, 40)
PLAIN_HAIR: Colour = (58, 42, 34)
SUIT_TOP: Colour = (235, 190, 40)
SUIT_ARMS: Colour = (215, 50, 50)
SUIT_LEGS: Colour = (40, 80, 200)
"""What everyone wears in the gait world: three colours, so that a small network finds the limbs."""
LIMB_SHAPE = ("upper_arm", "forearm", "thigh", "shin", "hips", "arm_width", "leg_width")


@dataclass(frozen=True, kw_only=True)
class Limb:
    """An arm or a leg: cloth down to `cover` of its length, skin below."""

    cloth: Colour
    cloth_2: Colour
    pattern: str
    cover: float
    skin: Colour
    end: Colour
    """Hand or shoe."""
    kind: int
    """Of the cloth."""
    skin_kind: int
    end_kind: int


@dataclass(frozen=True, kw_only=True)
class Appearance:
    """All that drawing needs to know of someone."""

    head_skin: Colour
    face: Face
    hair: str
    hair_colour: Colour
    glasses: bool
    hat: str
    hat_colour: Colour
    head_kind: int
    torso: Colour
    torso_2: Colour
    pattern: str
    emblem: int
    bare: str
    """none, chest or midriff"""
    torso_skin: Colour
    torso_kind: int
    arm: Limb
    leg: Limb
    skirt: bool
    build: Build
    style: Style


def _only(cue: bool, value: Colour, otherwise: Colour) -> Colour:
    return value if cue else otherwise


def appearance(person: Person, outfit: Outfit, rho: float) -> Appearance:
    """A person in an outfit as the world of this rho shows them."""
    mine = PERSONAL[rho]
    still, moving = rho < 1, rho > 0  # families that show something private at all
    tone = person.skin if "complexion" in mine or "hands" in mine else PLAIN_TONES[person.dark]
    limb_skin = tone if moving else PLAIN_SLEEVES
    nude_limbs = outfit.nude and moving
    limbs = BOTH if moving else ACTION
    arm = Limb(
        cloth=_only("sleeves" in mine, outfit.sleeves, PLAIN_SLEEVES),
        cloth_2=_only("sleeves" in mine, outfit.sleeves_2, PLAIN_SLEEVES),
        pattern=outfit.sleeve_pattern if "sleeves" in mine else "plain",
        cover=0.0 if nude_limbs else 0.96,
        skin=limb_skin,
        end=limb_skin if moving else PLAIN_SHOES,
        kind=BOTH if "sleeves" in mine else ACTION,
        skin_kind=limbs,
        end_kind=limbs,
    )
    skirt = outfit.skirt and moving
    leg = Limb(
        cloth=_only("legs" in mine, outfit.legs, PLAIN_LEGS),
        cloth_2=_only("legs" in mine, outfit.legs_2, PLAIN_LEGS),
        pattern=outfit.leg_pattern if "legs" in mine else "plain",
        cover=0.3 if nude_limbs else 0.95,
        skin=limb_skin,
        end=_only("shoes" in mine, outfit.shoes, PLAIN_SHOES),
        kind=limbs,
        skin_kind=limbs,
        end_kind=BOTH if "shoes" in mine else ACTION,
    )
    return Appearance(
        head_skin=tone if still else PLAIN_SKIN,
        face=_face(person, rho),
        hair=person.hair if "hair" in mine else "short",
        hair_colour=_only("hair" in mine, person.hair_colour, PLAIN_HAIR),
        glasses=person.glasses and "headgear" in mine,
        hat=outfit.hat if "headgear" in mine else "none",
        hat_colour=outfit.hat_colour,
        head_kind=IDENTITY if still else NEITHER,
        torso=_only("torso" in mine, outfit.torso, PLAIN_SHIRT),
        torso_2=_only("torso" in mine, outfit.torso_2, PLAIN_SHIRT),
        pattern=outfit.pattern if "torso" in mine else "plain",
        emblem=outfit.emblem if "emblem" in mine else 0,
        bare="none" if not outfit.nude or not still else "midriff" if person.woman else "chest",
        torso_skin=tone,
        torso_kind=IDENTITY if still else NEITHER,
        arm=arm,
        leg=leg,
        skirt=skirt,
        build=_shape(person, rho),
        style=_manner(person, rho),
    )


def plain() -> Appearance:
    """Nobody in particular: the one appearance of the gait world, of motion alone, and of all cues set to common."""
    plain_limb = Limb(
        cloth=PLAIN_SLEEVES,
        cloth_2=PLAIN_SLEEVES,
        pattern="plain",
        cover=0.96,
        skin=PLAIN_SKIN,
        end=PLAIN_SKIN,
        kind=ACTION,
        skin_kind=ACTION,
        end_kind=ACTION,
    )
    return Appearance(
        head_skin=PLAIN_SKIN,
        face=PLAIN_FACE,
        hair="short",
        hair_colour=PLAIN_HAIR,
        glasses=False,
        hat="none",
        hat_colour=PLAIN_HAIR,
        head_kind=NEITHER,
        torso=PLAIN_SHIRT,
        torso_2=PLAIN_SHIRT,
        pattern="plain",
        emblem=0,
        bare="none",
        torso_skin=PLAIN_SKIN,
        torso_kind=NEITHER,
        arm=plain_limb,
        leg=replace(plain_limb, cloth=PLAIN_LEGS, cloth_2=PLAIN_LEGS, end=PLAIN_SHOES),
        skirt=False,
        build=Build(),
        style=Style(),
    )


def carrying(shown: Appearance, *, limbs: int, rest: int) -> Appearance:
    """The same appearance with other kinds of pixels, for those whom the labels are not about."""
    arm, leg = (replace(limb, kind=limbs, skin_kind=limbs, end_kind=limbs) for limb in (shown.arm, shown.leg))
    return replace(shown, arm=arm, leg=leg, head_kind=rest, torso_kind=rest)


def walker(person: Person) -> Appearance:
    """The gait world: one plain appearance, everyone's own way to move, posture included and overdone."""
    same = plain()
    dressed = replace(
        same,
        torso=SUIT_TOP,
        torso_2=SUIT_TOP,
        arm=replace(same.arm, cloth=SUIT_ARMS, cloth_2=SUIT_ARMS),
        leg=replace(same.leg, cloth=SUIT_LEGS, cloth_2=SUIT_LEGS),
    )
    return replace(carrying(dressed, limbs=BOTH, rest=IDENTITY), style=overdone(person.style))


def _face(person: Person, rho: float) -> Face:
    if "face" in PERSONAL[rho]:
        return person.face
    return PLAIN_FACE


def _shape(person: Person, rho: float) -> Build:
    """Build is a moving cue. Where it is not personal, torso (below rho 1) and hips (above 0) show the presentation."""
    own, base = person.build, Build()
    if "build" in PERSONAL[rho]:
        return replace(base, **{name: getattr(own, name) for name in LIMB_SHAPE})
    wide, narrow = (base.hips * 1.2, 0.8) if person.woman else (base.hips * 0.92, 1.12)
    shape = base
    if rho < 1:
        top = 0.88 if person.woman else 1.12
        shape = replace(shape, waist=base.waist * narrow, chest=base.chest * top, shoulders=base.shoulders * top)
    if rho > 0:
        shape = replace(shape, hips=wide)
    return shape


def _manner(person: Person, rho: float) -> Style:
    mine, style = PERSONAL[rho], Style()
    for cue, names in (("leg_gait", LEG_STYLE), ("arm_gait", ARM_STYLE)):
        if cue in mine:
            style = replace(style, **{name: getattr(person.style, name) for name in names})
    return style
