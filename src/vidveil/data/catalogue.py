"""All datasets: name, reader, required files, and the files of a complete copy.

Readers are imported only when a dataset is loaded, so that listing is fast.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vidveil.core.registry import Registry, resolve

if TYPE_CHECKING:
    from vidveil.data.clips import ClipSet


@dataclass(frozen=True, slots=True)
class ExpectedFiles:
    """The files of a complete copy, so that a list can say how much of it is present."""

    official: int
    """Number of published files, or of those that the lists name."""
    files: tuple[tuple[str, ...], ...]
    """Patterns below the data folder, such as `hmdb51/*/*.avi`: the first of each group that matches any is counted. A
    pattern that ends with a slash counts folders."""
    what: str = "videos"
    classes: int = 0
    """Number of folders, where each is a class."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Optional labels by other authors: a name, and the places where they may lie."""


@dataclass(frozen=True, slots=True)
class Dataset:
    reader: str
    """`module:function`: `load(argument, *, frames, size, seed, root)`; `root` is None for built-in worlds."""
    usage: str
    summary: str
    requires: tuple[tuple[str, ...], ...] = ()
    """Paths below the data folder: one of each group must exist. Empty for built-in worlds."""
    expected: ExpectedFiles | None = None
    """None where the set is a single file."""
    layout: str = ""
    """Some example paths below the data folder."""

    @property
    def load(self) -> Callable[..., "ClipSet"]:
        reader: Callable[..., ClipSet] = resolve(self.reader)
        return reader


def _below(folders: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{pattern}" for folder in folders)


_HMDB51 = (("hmdb51",), ("testTrainMulti_7030_splits", "hmdb51/testTrainMulti_7030_splits"))
_VP_HMDB51 = tuple(
    f"{folder}hmdb51_privacy_attribute_label.pickle" for folder in ("", "labels/vp/", "hmdb51/", "hmdb51/labels/vp/")
)

_VP_UCF101 = tuple(
    f"{folder}ucf101_privacy_attribute_label.pickle" for folder in ("", "labels/vp/", "ucf101/", "ucf101/labels/vp/")
)
_IN_HMDB51 = ExpectedFiles(6_766, (("hmdb51/*/*.avi",),), classes=51, labels={"VP-HMDB51": _VP_HMDB51})

# Other common folder names, which readers look for, too.
THUMOS14 = ("thumos14", "THUMOS14")
UCF_CRIME = ("UCF_Crimes", "UCF-Crime", "UCF_Crime", "ucf_crime")
AVENUE = ("Avenue Dataset", "avenue/Avenue Dataset", "avenue")
CELEBV_HQ = ("35666", "processed", "downloaded_celebvhq/processed")
HVU = {"train": "HVU_Train_V1.0.csv", "val": "HVU_Val_V1.0.csv", "tags": "HVU_Tags_Categories_V1.0.csv"}
DEPTH = 4  # of nested folders: archives are often unpacked into folders of their own names

DATA = Registry(
    "dataset",
    {
        "puppets": Dataset(
            reader="vidveil.data.puppets:load",
            usage="puppets[:rho=0|0.5|1][,gait|null|bias_f|bias_m][,view=background|mask|motion][,share=0.1]",
            summary="synthetic people who act in synthetic places, with ground truth for everything",
        ),
        "puppets_untrimmed": Dataset(
            reader="vidveil.data.puppets.long:load_untrimmed",
            usage="puppets_untrimmed[:share=0.1]",
            summary="the same people in videos of half a minute: six actions with start and end, for detection",
        ),
        "puppets_anomalies": Dataset(
            reader="vidveil.data.puppets.long:load_anomalies",
            usage="puppets_anomalies[:share=0.1]",
            summary="the same people in normal scenes; in every second video somebody suddenly runs for a while",
        ),
        "ucf101_5": Dataset(
            reader="vidveil.data.readers.ucf101_5:load",
            usage="ucf101_5[:1|2|3]",
            summary="five classes of UCF101, official split 1, 2 or 3; a person is a (class, group)",
            layout="ucf101_5/manifest.csv and the videos that it names",
            requires=(("ucf101_5/manifest.csv",),),
            expected=ExpectedFiles(646, (("ucf101_5/*/*.*",),), classes=5),
        ),
        "weizmann": Dataset(
            reader="vidveil.data.readers.weizmann:load",
            usage="weizmann[:people=0|1|2 or actions=0|1|2]",
            summary="10 actions by 9 people; people or actions left out in three folds",
            layout="weizmann/manifest.csv and the videos that it names",
            requires=(("weizmann/manifest.csv",),),
            expected=ExpectedFiles(90, (("weizmann/*/*.*",),), classes=10),
        ),
        "surveillance_fight": Dataset(
            reader="vidveil.data.readers.surveillance_fight:load",
            usage="surveillance_fight",
            summary="fights and normal scenes from surveillance cameras; split by scene",
            layout="surveillance_fight/manifest.csv and the videos that it names",
            requires=(("surveillance_fight/manifest.csv",),),
            expected=ExpectedFiles(300, (("surveillance_fight/*/*.*",),)),
        ),
        "casia_a_gait": Dataset(
            reader="vidveil.data.readers.casia_a:load",
            usage="casia_a_gait[:people]",
            summary="silhouettes of 20 people walking, 3 views; gallery and probe, or people left out",
            layout="casia_a_gait.npz",
            requires=(("casia_a_gait.npz",),),
        ),
        "ucf101": Dataset(
            reader="vidveil.data.readers.ucf101:load",
            usage="ucf101[:1|2|3]",
            summary="UCF101 in its official layout, split 1, 2 or 3; VP-UCF101 labels if they are present",
            layout="UCF-101/Archery/v_Archery_g01_c01.avi, ucfTrainTestlist/trainlist01.txt",
            requires=(("UCF-101", "ucf101/UCF-101"), ("ucfTrainTestlist", "ucf101/ucfTrainTestlist")),
            expected=ExpectedFiles(
                13_320, (("UCF-101/*/*.avi", "ucf101/UCF-101/*/*.avi"),), classes=101, labels={"VP-UCF101": _VP_UCF101}
            ),
        ),
        "hmdb51": Dataset(
            reader="vidveil.data.readers.hmdb51:load",
            usage="hmdb51[:1|2|3]",
            summary="HMDB51 in its official layout, split 1, 2 or 3; VP-HMDB51 labels if they are present",
            layout="hmdb51/brush_hair/CLIP.avi, testTrainMulti_7030_splits/brush_hair_test_split1.txt",
            requires=_HMDB51,
            expected=_IN_HMDB51,
        ),
        "pa_hmdb51": Dataset(
            reader="vidveil.data.readers.pa_hmdb51:load",
            usage="pa_hmdb51[:frames|frames_60_40]",
            summary="test on PA-HMDB51's 515 videos, training on HMDB51's others with VP-HMDB51's labels; or frames",
            layout="PrivacyAttributes/brush_hair.json, and HMDB51 with hmdb51_privacy_attribute_label.pickle",
            requires=(*_HMDB51, ("PrivacyAttributes", "PA-HMDB51/PrivacyAttributes"), _VP_HMDB51),
            expected=_IN_HMDB51,
        ),
        "ntu60": Dataset(
            reader="vidveil.data.readers.ntu60:load",
            usage="ntu60[:subject|view|bias_f|bias_m]",
            summary="NTU RGB+D 60 in its official layout; by subject or camera, or with one action by the other gender",
            layout="nturgb+d_rgb/S001C001P001R001A001_rgb.avi",
            requires=(("nturgb+d_rgb", "ntu60/nturgb+d_rgb"),),
            expected=ExpectedFiles(
                56_880,
                tuple(
                    (f"nturgb+d_rgb/{setups}C*_rgb.avi", f"ntu60/nturgb+d_rgb/{setups}C*_rgb.avi")
                    for setups in ("S00[1-9]", "S01[0-7]")  # those above are NTU RGB+D 120's
                ),
                labels={"subgroups": ("ntu60_subgroups.txt", "ntu60/ntu60_subgroups.txt")},
            ),
        ),
        "toyota": Dataset(
            reader="vidveil.data.readers.toyota:load",
            usage="toyota",
            summary="Toyota Smarthome, trimmed: daily life of 18 elderly people; split by subject",
            layout="toyota_smarthome/mp4/Cook.Cleandishes_p02_r00_v02_c03.mp4",
            requires=(("toyota_smarthome/mp4", "mp4"),),
            expected=ExpectedFiles(
                16_115,
                (("toyota_smarthome/mp4/*.mp4", "mp4/*.mp4"),),
                labels={"subgroups": ("toyota_smarthome/toyota_subgroups.txt", "toyota_subgroups.txt")},
            ),
        ),
        "casia_b": Dataset(
            reader="vidveil.data.readers.casia_b:load",
            usage="casia_b[:all]",
            summary="silhouettes of 124 people walking, 11 views, with bag and coat; 74 people in training, 50 in test",
            layout="GaitDatasetB-silh/001/nm-01/000/001-nm-01-000-001.png",
            requires=(("GaitDatasetB-silh",),),
            expected=ExpectedFiles(13_640, (("GaitDatasetB-silh/*/*-*/*/",),), what="walks"),
        ),
        "vispr": Dataset(
            reader="vidveil.data.readers.vispr:load",
            usage="vispr[:7|5]",
            summary="VISPR's pictures as clips that stand still, 7 or 5 attributes, official train, val and test",
            layout="vispr/train2017/2017_10001018.jpg and .json, vispr/val2017, vispr/test2017",
            requires=tuple((f"vispr/{part}2017", f"vispr/images/{part}2017") for part in ("train", "val", "test")),
            expected=ExpectedFiles(
                22_167,
                tuple(
                    (f"vispr/{part}2017/*.jpg", f"vispr/images/{part}2017/*.jpg") for part in ("train", "val", "test")
                ),
                what="pictures",
            ),
        ),
        "kinetics400": Dataset(
            reader="vidveil.data.readers.kinetics400:load",
            usage="kinetics400",
            summary="Kinetics-400, all videos present; test is the official validation",
            layout="kinetics400/train/abseiling/-3B32lodo2M_000059_000069.mp4, kinetics400/val",
            requires=(("kinetics400/train",), ("kinetics400/val",)),
            expected=ExpectedFiles(
                266_440,
                tuple((f"kinetics400/{part}/*/*.mp4", f"kinetics400/{part}/*.mp4") for part in ("train", "val")),
            ),
        ),
        "thumos14": Dataset(
            reader="vidveil.data.readers.thumos14:load",
            usage="thumos14",
            summary="THUMOS14's events of 20 sports, cut out of untrimmed videos; official validation and test",
            layout="thumos14/thumos14.json, thumos14/validation/video_validation_0000051.mp4, video_test_0000004.mp4",
            requires=(THUMOS14,),
            expected=ExpectedFiles(
                410, tuple(_below(THUMOS14, f"{'*/' * deep}video_*_*.mp4") for deep in range(DEPTH + 1))
            ),
        ),
        "ucf_crime": Dataset(
            reader="vidveil.data.readers.ucf_crime:load",
            usage="ucf_crime",
            summary="UCF-Crime: untrimmed surveillance video, 13 crimes and normal scenes; official train and test",
            layout="UCF_Crimes/Videos/Abuse/Abuse001_x264.mp4, UCF_Crimes/Anomaly_Train.txt",
            requires=(UCF_CRIME,),
            expected=ExpectedFiles(
                1_900, tuple(_below(UCF_CRIME, f"{'*/' * deep}*_x264.mp4") for deep in range(DEPTH + 1))
            ),
        ),
        "ucsd": Dataset(
            reader="vidveil.data.readers.ucsd:load",
            usage="ucsd[:ped1|ped2]",
            summary="UCSD's walkways: windows of videos, normal in training; bikes, carts and skaters are abnormal",
            layout="UCSD_Anomaly_Dataset.v1p2/UCSDped1/Train/Train001/001.tif",
            requires=(tuple(f"{folder}UCSD_Anomaly_Dataset.v1p2" for folder in ("", "ucsd/")),),
            expected=ExpectedFiles(
                98,
                tuple(
                    tuple(f"{folder}UCSD_Anomaly_Dataset.v1p2/UCSDped?/{part}/" for folder in ("", "ucsd/"))
                    for part in ("Train/Train???", "Test/Test???")
                ),
            ),
        ),
        "avenue": Dataset(
            reader="vidveil.data.readers.avenue:load",
            usage="avenue",
            summary="CUHK Avenue: windows of videos of one walkway, normal in training; labels per frame in test",
            layout="Avenue Dataset/training_videos/01.avi, ground_truth_demo/testing_label_mask/1_label.mat",
            requires=(
                tuple(f"{folder}/training_videos" for folder in AVENUE),
                ("ground_truth_demo", *(f"{folder}/ground_truth_demo" for folder in AVENUE)),
            ),
            expected=ExpectedFiles(37, (tuple(f"{folder}/*ing_videos/*.avi" for folder in AVENUE),)),
        ),
        "celebv_hq": Dataset(
            reader="vidveil.data.readers.celebv_hq:load",
            usage="celebv_hq[:DRAW]",
            summary="CelebV-HQ, all clips present: eight facial expressions, five attributes; split by YouTube video",
            layout="celebv_hq/celebvhq_info.json, celebv_hq/35666/M2Ohb0FAaJU_1.mp4",
            requires=(("celebv_hq/celebvhq_info.json",), tuple(f"celebv_hq/{folder}" for folder in CELEBV_HQ)),
            expected=ExpectedFiles(35_666, (tuple(f"celebv_hq/{folder}/*.mp4" for folder in CELEBV_HQ),), what="clips"),
        ),
        "p_hvu": Dataset(
            reader="vidveil.data.readers.p_hvu:load",
            usage="p_hvu[:both|objects|scenes[,every]]",
            summary="P-HVU, all videos present: several actions at once; objects and scenes are private",
            layout="hvu/HVU_Train_V1.0.csv, hvu/train/ID_000057_000067.mp4",
            requires=(
                *((f"hvu/{file}", f"hvu/annotations/{file}") for file in HVU.values()),
                *((f"hvu/{part}", f"hvu/videos_{part}") for part in ("train", "val")),
            ),
            expected=ExpectedFiles(
                261_224, tuple((f"hvu/{part}/*.mp4", f"hvu/videos_{part}/*.mp4") for part in ("train", "val"))
            ),
        ),
    },
)
