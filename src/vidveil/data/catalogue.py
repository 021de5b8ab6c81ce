"""All datasets: how each is called, what reads it, what must lie in the folder, and how much of it there is.

Nothing heavy is imported before a dataset is loaded, so that they can be listed at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vidveil.core.registry import Registry, resolve

if TYPE_CHECKING:
    from vidveil.data.clips import ClipSet


@dataclass(frozen=True, slots=True)
class Holds:
    """What a whole copy has, so that a list can say how much of it is here."""

    official: int
    """How many files were published, or as many as the lists name."""
    files: tuple[tuple[str, ...], ...]
    """Patterns under the data folder, such as `hmdb51/*/*.avi`: the first of each group that has any is counted. One
    that ends with a slash counts folders."""
    what: str = "videos"
    classes: int = 0
    """In how many folders they lie, where a folder is a class."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What others made of it and a copy may lack: a name, and the places where it may lie."""


@dataclass(frozen=True, slots=True)
class Dataset:
    where: str
    """`module:name` of its reader: `load(argument, *, frames, size, seed, root)`, `root` None for what is built in."""
    usage: str
    summary: str
    needs: tuple[tuple[str, ...], ...] = ()
    """What lies under the data folder: one of each group. None for what is built in."""
    holds: Holds | None = None
    """None where one file is all of it."""
    looks: str = ""
    """A few paths under the data folder, for who has none of it yet."""

    @property
    def load(self) -> Callable[..., "ClipSet"]:
        found: Callable[..., ClipSet] = resolve(self.where)
        return found


def _below(folders: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{pattern}" for folder in folders)


_HMDB51 = (("hmdb51",), ("testTrainMulti_7030_splits", "hmdb51/testTrainMulti_7030_splits"))
_VP_HMDB51 = tuple(
    f"{folder}hmdb51_privacy_attribute_label.pickle" for folder in ("", "labels/vp/", "hmdb51/", "hmdb51/labels/vp/")
)

_VP_UCF101 = tuple(
    f"{folder}ucf101_privacy_attribute_label.pickle" for folder in ("", "labels/vp/", "ucf101/", "ucf101/labels/vp/")
)
_IN_HMDB51 = Holds(6_766, (("hmdb51/*/*.avi",),), classes=51, labels={"VP-HMDB51": _VP_HMDB51})

# Where others put them: readers look there, too.
THUMOS14 = ("thumos14", "THUMOS14")
UCF_CRIME = ("UCF_Crimes", "UCF-Crime", "UCF_Crime", "ucf_crime")
AVENUE = ("Avenue Dataset", "avenue/Avenue Dataset", "avenue")
CELEBV_HQ = ("35666", "processed", "downloaded_celebvhq/processed")
HVU = {"train": "HVU_Train_V1.0.csv", "val": "HVU_Val_V1.0.csv", "tags": "HVU_Tags_Categories_V1.0.csv"}
DEPTH = 4  # folders in folders: zips that are unpacked into folders of their own names, twice

DATA = Registry(
    "dataset",
    {
        "puppets": Dataset(
            where="vidveil.data.puppets:load",
            usage="puppets[:rho=0|0.5|1,gait,null,bias_f,bias_m,view=...]",
            summary="drawn people who act in drawn places; everything about them is known",
        ),
        "puppets_untrimmed": Dataset(
            where="vidveil.data.puppets.long:load_untrimmed",
            usage="puppets_untrimmed[:share=0.1]",
            summary="the same people in half a minute of video: six actions, which begin and end; to detect",
        ),
        "puppets_anomalies": Dataset(
            where="vidveil.data.puppets.long:load_anomalies",
            usage="puppets_anomalies[:share=0.1]",
            summary="the same people on an ordinary day; in every second video somebody suddenly runs, for a while",
        ),
        "ucf101_5": Dataset(
            where="vidveil.data.readers.small_sets:load_ucf101_5",
            usage="ucf101_5[:1|2|3]",
            summary="five classes of UCF101, official split 1, 2 or 3; a person is a (class, group)",
            looks="ucf101_5/manifest.csv and the videos that it names",
            needs=(("ucf101_5/manifest.csv",),),
            holds=Holds(646, (("ucf101_5/*/*.*",),), classes=5),
        ),
        "weizmann": Dataset(
            where="vidveil.data.readers.small_sets:load_weizmann",
            usage="weizmann[:people=0|1|2 or actions=0|1|2]",
            summary="10 actions by 9 people; people or actions left out in three folds",
            looks="weizmann/manifest.csv and the videos that it names",
            needs=(("weizmann/manifest.csv",),),
            holds=Holds(90, (("weizmann/*/*.*",),), classes=10),
        ),
        "surveillance_fight": Dataset(
            where="vidveil.data.readers.surveillance_fight:load",
            usage="surveillance_fight",
            summary="fights and ordinary days from surveillance cameras; split by scene",
            looks="surveillance_fight/manifest.csv and the videos that it names",
            needs=(("surveillance_fight/manifest.csv",),),
            holds=Holds(300, (("surveillance_fight/*/*.*",),)),
        ),
        "casia_a_gait": Dataset(
            where="vidveil.data.readers.casia_a:load",
            usage="casia_a_gait[:people]",
            summary="silhouettes of 20 people walking, 3 views; gallery and probe, or people left out",
            looks="casia_a_gait.npz",
            needs=(("casia_a_gait.npz",),),
        ),
        "ucf101": Dataset(
            where="vidveil.data.readers.ucf101:load",
            usage="ucf101[:1|2|3]",
            summary="UCF101 in its official layout, split 1, 2 or 3; VP-UCF101 labels if they lie beside it",
            looks="UCF-101/Archery/v_Archery_g01_c01.avi, ucfTrainTestlist/trainlist01.txt",
            needs=(("UCF-101", "ucf101/UCF-101"), ("ucfTrainTestlist", "ucf101/ucfTrainTestlist")),
            holds=Holds(
                13_320, (("UCF-101/*/*.avi", "ucf101/UCF-101/*/*.avi"),), classes=101, labels={"VP-UCF101": _VP_UCF101}
            ),
        ),
        "hmdb51": Dataset(
            where="vidveil.data.readers.hmdb51:load",
            usage="hmdb51[:1|2|3]",
            summary="HMDB51 in its official layout, split 1, 2 or 3; VP-HMDB51 labels if they lie beside it",
            looks="hmdb51/brush_hair/CLIP.avi, testTrainMulti_7030_splits/brush_hair_test_split1.txt",
            needs=_HMDB51,
            holds=_IN_HMDB51,
        ),
        "pa_hmdb51": Dataset(
            where="vidveil.data.readers.pa_hmdb51:load",
            usage="pa_hmdb51[:frames|frames_60_40]",
            summary="PA-HMDB51's 515 videos are tested, the others of HMDB51 trained on, VP-HMDB51's labels; or frames",
            looks="PrivacyAttributes/brush_hair.json, and HMDB51 with hmdb51_privacy_attribute_label.pickle",
            needs=(*_HMDB51, ("PrivacyAttributes", "PA-HMDB51/PrivacyAttributes"), _VP_HMDB51),
            holds=_IN_HMDB51,
        ),
        "ntu60": Dataset(
            where="vidveil.data.readers.ntu60:load",
            usage="ntu60[:subject|view|bias_f|bias_m]",
            summary="NTU RGB+D 60 in its official layout; by subject or camera, or with one action by the other gender",
            looks="nturgb+d_rgb/S001C001P001R001A001_rgb.avi",
            needs=(("nturgb+d_rgb", "ntu60/nturgb+d_rgb"),),
            holds=Holds(
                56_880,
                tuple(
                    (f"nturgb+d_rgb/{setups}C*_rgb.avi", f"ntu60/nturgb+d_rgb/{setups}C*_rgb.avi")
                    for setups in ("S00[1-9]", "S01[0-7]")  # those above are NTU RGB+D 120's
                ),
                labels={"subgroups": ("ntu60_subgroups.txt", "ntu60/ntu60_subgroups.txt")},
            ),
        ),
        "toyota": Dataset(
            where="vidveil.data.readers.toyota:load",
            usage="toyota",
            summary="Toyota Smarthome, trimmed: daily life of 18 elderly people; split by subject",
            looks="toyota_smarthome/mp4/Cook.Cleandishes_p02_r00_v02_c03.mp4",
            needs=(("toyota_smarthome/mp4", "mp4"),),
            holds=Holds(
                16_115,
                (("toyota_smarthome/mp4/*.mp4", "mp4/*.mp4"),),
                labels={"subgroups": ("toyota_smarthome/toyota_subgroups.txt", "toyota_subgroups.txt")},
            ),
        ),
        "casia_b": Dataset(
            where="vidveil.data.readers.casia_b:load",
            usage="casia_b[:all]",
            summary="silhouettes of 124 people walking, 11 views, with bag and coat; 74 people trained on, 50 tested",
            looks="GaitDatasetB-silh/001/nm-01/000/001-nm-01-000-001.png",
            needs=(("GaitDatasetB-silh",),),
            holds=Holds(13_640, (("GaitDatasetB-silh/*/*-*/*/",),), what="walks"),
        ),
        "vispr": Dataset(
            where="vidveil.data.readers.vispr:load",
            usage="vispr[:7|5]",
            summary="VISPR's pictures as clips that stand still, 7 or 5 attributes, official train, val and test",
            looks="vispr/train2017/2017_10001018.jpg and .json, vispr/val2017, vispr/test2017",
            needs=tuple((f"vispr/{part}2017", f"vispr/images/{part}2017") for part in ("train", "val", "test")),
            holds=Holds(
                22_167,
                tuple(
                    (f"vispr/{part}2017/*.jpg", f"vispr/images/{part}2017/*.jpg") for part in ("train", "val", "test")
                ),
                what="pictures",
            ),
        ),
        "kinetics400": Dataset(
            where="vidveil.data.readers.kinetics400:load",
            usage="kinetics400",
            summary="Kinetics-400, what is there of it; tested on the official validation",
            looks="kinetics400/train/abseiling/-3B32lodo2M_000059_000069.mp4, kinetics400/val",
            needs=(("kinetics400/train",), ("kinetics400/val",)),
            holds=Holds(
                266_440,
                tuple((f"kinetics400/{part}/*/*.mp4", f"kinetics400/{part}/*.mp4") for part in ("train", "val")),
            ),
        ),
        "thumos14": Dataset(
            where="vidveil.data.readers.thumos14:load",
            usage="thumos14",
            summary="THUMOS14's events of 20 sports, cut out of untrimmed videos; official validation and test",
            looks="thumos14/thumos14.json, thumos14/validation/video_validation_0000051.mp4, video_test_0000004.mp4",
            needs=(THUMOS14,),
            holds=Holds(410, tuple(_below(THUMOS14, f"{'*/' * deep}video_*_*.mp4") for deep in range(DEPTH + 1))),
        ),
        "ucf_crime": Dataset(
            where="vidveil.data.readers.ucf_crime:load",
            usage="ucf_crime",
            summary="UCF-Crime: untrimmed surveillance video, 13 crimes and ordinary days; official train and test",
            looks="UCF_Crimes/Videos/Abuse/Abuse001_x264.mp4, UCF_Crimes/Anomaly_Train.txt",
            needs=(UCF_CRIME,),
            holds=Holds(1_900, tuple(_below(UCF_CRIME, f"{'*/' * deep}*_x264.mp4") for deep in range(DEPTH + 1))),
        ),
        "ucsd": Dataset(
            where="vidveil.data.readers.ucsd:load",
            usage="ucsd[:ped1|ped2]",
            summary="UCSD's walkways: windows of videos, normal in training; bikes, carts and skaters are abnormal",
            looks="UCSD_Anomaly_Dataset.v1p2/UCSDped1/Train/Train001/001.tif",
            needs=(tuple(f"{folder}UCSD_Anomaly_Dataset.v1p2" for folder in ("", "ucsd/")),),
            holds=Holds(
                98,
                tuple(
                    tuple(f"{folder}UCSD_Anomaly_Dataset.v1p2/UCSDped?/{part}/" for folder in ("", "ucsd/"))
                    for part in ("Train/Train???", "Test/Test???")
                ),
            ),
        ),
        "avenue": Dataset(
            where="vidveil.data.readers.avenue:load",
            usage="avenue",
            summary="CUHK Avenue: windows of videos of one walkway, normal in training; labels by the frame in test",
            looks="Avenue Dataset/training_videos/01.avi, ground_truth_demo/testing_label_mask/1_label.mat",
            needs=(
                tuple(f"{folder}/training_videos" for folder in AVENUE),
                ("ground_truth_demo", *(f"{folder}/ground_truth_demo" for folder in AVENUE)),
            ),
            holds=Holds(37, (tuple(f"{folder}/*ing_videos/*.avi" for folder in AVENUE),)),
        ),
        "celebv_hq": Dataset(
            where="vidveil.data.readers.celebv_hq:load",
            usage="celebv_hq[:DRAW]",
            summary="CelebV-HQ, what is there of it: eight facial expressions, five attributes; split by YouTube video",
            looks="celebv_hq/celebvhq_info.json, celebv_hq/35666/M2Ohb0FAaJU_1.mp4",
            needs=(("celebv_hq/celebvhq_info.json",), tuple(f"celebv_hq/{folder}" for folder in CELEBV_HQ)),
            holds=Holds(35_666, (tuple(f"celebv_hq/{folder}/*.mp4" for folder in CELEBV_HQ),), what="clips"),
        ),
        "p_hvu": Dataset(
            where="vidveil.data.readers.p_hvu:load",
            usage="p_hvu[:both|objects|scenes[,every]]",
            summary="P-HVU, what is there of it: several actions at once; objects and scenes are to be hidden",
            looks="hvu/HVU_Train_V1.0.csv, hvu/train/ID_000057_000067.mp4",
            needs=(
                *((f"hvu/{file}", f"hvu/annotations/{file}") for file in HVU.values()),
                *((f"hvu/{part}", f"hvu/videos_{part}") for part in ("train", "val")),
            ),
            holds=Holds(261_224, tuple((f"hvu/{part}/*.mp4", f"hvu/videos_{part}/*.mp4") for part in ("train", "val"))),
        ),
    },
)
