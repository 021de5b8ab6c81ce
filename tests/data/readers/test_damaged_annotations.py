"""Lists and labels that are damaged or hold something else: the error names the file and says how it should look."""

import io
import json
import pickle
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data import (
    made_avenue,
    made_celebv_hq,
    made_hmdb51,
    made_kinetics400,
    made_ntu60,
    made_p_hvu,
    made_thumos14,
    made_toyota,
    made_ucf101,
    made_ucf_crime,
    made_ucsd,
    made_vispr,
)
from tests.data.made_celebv_hq import clip as face
from tests.data.made_thumos14 import EVENTS, TESTED, TRAINED
from tests.data.made_ucf_crime import LISTED, TRAIN
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.readers import celebv_hq, ntu60, p_hvu, toyota, ucf_crime
from vidveil.data.readers.hmdb51 import LABELS, LISTS
from vidveil.data.readers.ucf101_5 import COLUMNS

Content = str | bytes | Callable[[bytes], bytes]
"""Of the file; a function changes what is in it."""


def hmdb51(root: Path) -> None:
    made_hmdb51.vp(made_hmdb51.hmdb(root, film=False))


def pa_hmdb51(root: Path) -> None:
    hmdb51(root)
    made_hmdb51.pa(root)


def kinetics400(root: Path) -> None:
    for part in ("train", "val"):
        made_kinetics400.lists(root if part == "val" else made_kinetics400.made(root), part)


def manifest(name: str) -> Callable[[Path], None]:
    return lambda root: (root / name).mkdir()


THUMOS_LISTS = "thumos14/TH14_Temporal_annotations_test/annotation"
CRIME_LISTS = "UCF_Crimes/Anomaly_Detection_splits"
FILES: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "ucf101 classes": ("ucf101", lambda root: made_ucf101.ucf(root, film=False), "ucfTrainTestlist/classInd.txt"),
    "ucf101 list": ("ucf101", lambda root: made_ucf101.ucf(root, film=False), "ucfTrainTestlist/trainlist01.txt"),
    "ucf101_5": ("ucf101_5", manifest("ucf101_5"), "ucf101_5/manifest.csv"),
    "weizmann": ("weizmann", manifest("weizmann"), "weizmann/manifest.csv"),
    "surveillance_fight": ("surveillance_fight", manifest("surveillance_fight"), "surveillance_fight/manifest.csv"),
    "casia_a_gait": ("casia_a_gait", lambda _: None, "casia_a_gait.npz"),
    "hmdb51 list": ("hmdb51", hmdb51, f"{LISTS}/sit_test_split1.txt"),
    "hmdb51 labels": ("hmdb51", hmdb51, LABELS),
    "pa_hmdb51": ("pa_hmdb51", pa_hmdb51, "PA-HMDB51/PrivacyAttributes/sit.json"),
    "kinetics400": ("kinetics400", kinetics400, "kinetics400/train.csv"),
    "p_hvu list": ("p_hvu", made_p_hvu.made, f"hvu/{p_hvu.LISTS['train']}"),
    "p_hvu tags": ("p_hvu", made_p_hvu.made, f"hvu/{p_hvu.CATEGORIES}"),
    "celebv_hq": ("celebv_hq", made_celebv_hq.made, f"celebv_hq/{celebv_hq.INFO}"),
    "thumos14": ("thumos14", lambda root: made_thumos14.as_json(made_thumos14.videos(root)), "thumos14/thumos14.json"),
    "thumos14 list": (
        "thumos14",
        lambda root: made_thumos14.as_lists(made_thumos14.videos(root)),
        f"{THUMOS_LISTS}/HighJump_test.txt",
    ),
    "thumos14 extra list": (
        "thumos14",
        lambda root: made_thumos14.as_lists(made_thumos14.videos(root)),
        f"{THUMOS_LISTS}/Juggling_test.txt",
    ),
    "ucf_crime training": (
        "ucf_crime",
        lambda root: made_ucf_crime.lists(made_ucf_crime.made(root)),
        f"{CRIME_LISTS}/{ucf_crime.TRAINING_LIST}",
    ),
    "ucf_crime ranges": (
        "ucf_crime",
        lambda root: made_ucf_crime.lists(made_ucf_crime.made(root)),
        f"{CRIME_LISTS}/{ucf_crime.RANGES[0]}",
    ),
    "ucsd": ("ucsd:ped2", made_ucsd.ped, "UCSD_Anomaly_Dataset.v1p2/UCSDped2/Test/UCSDped2.m"),
    "avenue masks": ("avenue", made_avenue.made, "ground_truth_demo/testing_label_mask/2_label.mat"),
    "avenue labels": ("avenue", made_avenue.made, "ground_truth_demo/testing_label_mask/2_label.npy"),
    "vispr": ("vispr", made_vispr.made, "vispr/val2017/2017_2001.json"),
    "vispr list": ("vispr", made_vispr.made, "vispr/train2017.txt"),
    "vispr labels": ("vispr", lambda root: made_vispr.made(root, annotations=None), "vispr/train_labels.pkl"),
    "ntu60": ("ntu60:bias_m", made_ntu60.ntu, ntu60.GENDERS),
    "toyota": ("toyota", made_toyota.smarthome, f"{toyota.FOLDER}/{toyota.GENDERS}"),
}
"""The set to load, what makes a small one, and the annotation file in it."""


def refused(root: Path, key: str, content: Content, message: str = "") -> None:
    """Loading is one error of one line that names the file."""
    spec, make, file = FILES[key]
    make(root)
    path = root / file
    if callable(content):
        content = content(path.read_bytes())
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=re.escape(message) or None) as error:
        load_data(spec, root=root, frames=4, size=28)
    assert path.name in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("key", FILES)
def test_binary_rubbish_is_refused(tmp_path, key):
    refused(tmp_path, key, b"\xff\xfe\x9c\x00PK")


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("key", [key for key in FILES if key not in ("ntu60", "toyota")])  # these may be empty
def test_an_empty_file_is_refused(tmp_path, key):
    refused(tmp_path, key, b"")


CLIP_LINE = "a line is clip.avi and 0, 1 or 2 (in no split, training, test), not"
KINETICS = f"{made_kinetics400.HEAD}\nair drumming,{made_kinetics400.video('train', 0, 0)},0,10,train\n"
HVU = f"{made_p_hvu.HEAD}\n{made_p_hvu.WHOLE},{made_p_hvu.video('train', 0)},0,10\n"
CATEGORIES = "Tag,Category\n" + "".join(f"{tag},{kind}\n" for kind, tags in made_p_hvu.TAGS.items() for tag in tags)
UCF101_5 = f"path,class,group,split1,{','.join(COLUMNS)}\n"
RANGE = "TestVideoFile{end+1}.gt_frame = "


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("key", "content", "message"),
    [
        ("ucf101 classes", "1 Archery\n3 Biking\n", "a line is a number and a class, counted from 1"),
        ("ucf101 list", "../../secret.avi 1\n", "'../../secret.avi' is no Class/v_Class_g01_c01.avi of a class in"),
        ("ucf101_5", f"{UCF101_5}a.mp4,Lunges,one,train,1,1,1,1,1\n", "has a group or a label that is no number"),
        ("ucf101_5", f"{UCF101_5}a.mp4,Lunges,1,train,1,1,1,?,1\n", "has a group or a label that is no number"),
        ("ucf101_5", f"{UCF101_5}a.mp4,Lunges,1,val,1,1,1,1,1\n", "a split is train or test, not 'val'"),
        ("weizmann", "path,action\na.mp4,run\n", "has no column 'subject'"),
        ("weizmann", "path,action,subject\n", "lists nothing"),
        ("surveillance_fight", "path,label\na.mp4,2\n", "a label is 0 or 1, not '2'"),
        *(("hmdb51 list", f"b.avi 1\n{line}\n", f"{CLIP_LINE} {line!r}")
          for line in ("a.avi 3", "a.avi", "../../secret.avi 1", "a.mp4 1", "a b.avi 1")),
        ("hmdb51 list", "\n", "lists nothing"),
        ("kinetics400", f"{KINETICS}yoga,short,1,11,train", "line 3: a class, an id of 11 letters and two whole sec"),
        ("kinetics400", f"{KINETICS}yoga,aaaaaaaaaaa,1.5,11,train", "line 3: a class"),
        ("kinetics400", f"{KINETICS}yoga,../../../aa,1,11,train", "line 3: a class"),
        ("kinetics400", f"{KINETICS},aaaaaaaaaaa,1,11,train", "line 3: a class"),
        ("kinetics400", f"{KINETICS}yoga,aaaaaaaaaaa,1,11,test", "line 3: 'test' is no split of this list; it is of t"),
        ("kinetics400", KINETICS + KINETICS.splitlines()[1], "line 3: -train_0000_000000_000010.mp4 is listed twice"),
        ("kinetics400", f"{KINETICS}yoga,aaaaaaaaaaa", "line 3 ends before its time_start"),
        ("p_hvu list", f"{HVU}dance,short,1,11", "line 3: tags, an id of 11 letters and two times in seconds are want"),
        ("p_hvu list", f"{HVU}dance,../../../aa,1,11", "line 3: tags, an id"),
        ("p_hvu list", f"{HVU}dance,aaaaaaaaaaa,11,1", "line 3: tags, an id"),
        ("p_hvu list", f"{HVU}dance,aaaaaaaaaaa,one,11", "line 3: tags, an id"),
        ("p_hvu list", f"{HVU}a;b,aaaaaaaaaaa,1,11", "line 3: 'a;b' is in no category; tags are joined by |"),
        ("p_hvu list", f"{HVU},aaaaaaaaaaa,1,11", "line 3: '' is in no category"),
        ("p_hvu list", f"{HVU}dance,aaaaaaaaaaa", "line 3 ends before its time_start"),
        ("p_hvu list", f"{made_p_hvu.HEAD}\nfun,aaaaaaaaaaa,1,11", "has no video with an action, an object and a sce"),
        ("p_hvu tags", "Tag,Category\ndance,action\nhat,object\n", "has no tag of scene: a line is dance,action"),
        ("p_hvu tags", f"{CATEGORIES}dance,\n", "line 10: a tag and its category are wanted, such as dance,action"),
        ("thumos14 list", f"{TESTED[0]} 1 2 3 4", "a line is a video and two times, video_test_0000896 18.6 24.8, not"),
        ("thumos14 list", f"{TESTED[0]} 1", "a line is a video and two times"),
        ("thumos14 list", f"{TESTED[0]} one 2", "an event has two times in seconds and a class"),
        ("thumos14 list", f"{TESTED[0]} 2 1", "HighJump ends at 1, before it begins at 2"),
        ("thumos14 list", "holiday 1 2", "is called video_validation_0000051 or video_test_0000004, not 'holiday'"),
        ("thumos14 list", f"{TRAINED[0]} 1 2", f"{TRAINED[0]} is not of this part"),
        ("thumos14 extra list", f"{TESTED[0]} 1 2", "no class is called 'Juggling'; there are BaseballPitch, "),
        ("ucf_crime training", "Arson/Abuse001_x264.mp4", "a line is Abuse/Abuse001_x264.mp4, not 'Arson/Abuse001_x"),
        ("ucf_crime training", "Abuse001_x264.mp4", "a line is Abuse/Abuse001_x264.mp4"),
        ("ucf_crime training", LISTED[-1], "a line is Training_Normal_Videos_Anomaly/"),
        ("ucf_crime training", "Abuse/holiday.mp4", "'Abuse/holiday.mp4' is no video of UCF-Crime"),
        ("ucf_crime training", f"{TRAIN[0]}\n{TRAIN[0]}", f"lists {TRAIN[0]} twice"),
        ("ucf_crime training", "Abuse/Abuse028_x264.mp4", "is in training by Anomaly_Train.txt and in test by Temp"),
        *(("ucf_crime ranges", f"Abuse028_x264.mp4 {words}", message) for words, message in (
            ("Abuse 165 240 -1", "a line is a video, its class and four frames, such as Abuse028_x264.mp4 "),
            ("Abuse 165 240.5 -1 -1", "a line is a video, its class and four frames"),
            ("Abuse 165 -240 -1 -1", "a line is a video, its class and four frames"),
            ("Abuse 240 165 -1 -1", "Abuse028_x264.mp4: Abuse ends at frame 165, before it begins at 240"),
            ("Abuse 165 -1 -1 -1", "a range is two frames, or -1 twice, not 165 and -1"),
            ("Abuse -1 -1 -1 -1", "shows Abuse, but its first range of frames is missing"),
            ("Abuse -1 -1 165 240", "shows Abuse, but its first range of frames is missing"),
            ("Abuse 165 240 200 300", "the second range begins at 200, before the first one ends at 240"),
            ("Arson 165 240 -1 -1", "is labelled Arson, but by its name it shows Abuse"),
            ("Abuse 1 2 -1 -1\nAbuse028_x264.mp4 Abuse 1 2 -1 -1", "lists Abuse028_x264.mp4 twice"),
        )),
        ("ucf_crime ranges", "Juggling028_x264.mp4 Juggling 1 2 -1 -1", "'Juggling028_x264.mp4' is no video of UCF-C"),
        ("ucf_crime ranges", "holiday.mp4 Abuse 1 2 -1 -1", "'holiday.mp4' is no video of UCF-Crime: those are called"),
        ("ucf_crime ranges", "Normal_Videos_003_x264.mp4 Normal 1 2 -1 -1", "is normal and has -1 four times, not 1 t"),
        ("ucsd", f"{RANGE}[3:5];", "names 1 videos and "),
        ("ucsd", f"{RANGE}[3:5];\n{RANGE}[5-90];", "line 2: TestVideoFile{end+1}.gt_frame = [5:90, 140:200]; is wan"),
        ("ucsd", f"{RANGE}[3:5];\n{RANGE}[];", "line 2: "),
        ("ucsd", f"{RANGE}[3:11];\n{RANGE}[1:2];", "has 3:11 for Test001, which has frames 1 to 10: unpack the set"),
        ("ucsd", f"{RANGE}[5:3];\n{RANGE}[1:2];", "has 5:3 for Test001"),
        ("ucsd", f"{RANGE}[0:3];\n{RANGE}[1:2];", "has 0:3 for Test001"),
        ("ucsd", "% nothing", "names no abnormal frames: a line is TestVideoFile"),
        ("vispr list", "2017_1000.json", "a line is annotations/train2017/2017_10001018.json, not '2017_1000.json'"),
        ("vispr list", "annotations/val2017/2017_1.json", "a line is annotations/train2017/2017_10001018.json, not"),
        ("vispr list", "../train2017/x.json", "a line is annotations/train2017/2017_10001018.json, not"),
        ("vispr list", "a b", "a line is annotations/train2017/2017_10001018.json, not"),
        ("vispr list", "train2017/2017_1.jpg\nimages/train2017/2017_1.jpg\n", "lists 2017_1 twice"),
        ("ntu60", made_ntu60.gender_list(P005=None), "and that of P005 is unknown: write"),
        ("ntu60", made_ntu60.gender_list(P008="m"), "half are f and half m, not 6 and 8"),
        ("ntu60", made_ntu60.gender_list(P010="f"), "has P010 as f, the protocol as m"),
        ("ntu60", made_ntu60.gender_list(P001="w"), "a line is a person and f or m, such as P001 f, not 'P001 w'"),
        ("ntu60", made_ntu60.gender_list(p1="f"), "such as P001 f, not 'p1 f'"),
        ("ntu60", f"{made_ntu60.gender_list()}P001 f\n", "has P001 as f and as m"),
        ("toyota", "p02: f\n", "a line is a person and f or m, such as p02 f"),
    ],
)  # fmt: skip
def test_a_line_of_another_form_is_refused(tmp_path, key, content, message):
    refused(tmp_path, key, content, message)


def emotion(labels: object, *, changes: bool = False) -> dict[str, object]:
    return face(0, {"sep_flag": changes, "labels": labels})


def event(**changed: object) -> str:
    return json.dumps({"video_test_0000004": {"annotations": [{"segment": [1, 2], "label": "Diving"} | changed]}})


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("key", "content", "message"),
    [
        *((key, "{", "is not JSON: Expecting property name enclosed in double quotes in line 1, column 2: copy it a")
          for key in ("pa_hmdb51", "celebv_hq", "thumos14", "vispr")),
        ("pa_hmdb51", "[" * 100_000, "is nested too deeply"),
        ("pa_hmdb51", "[]", "should be {video: {attribute: [[first, last, value], …]}}"),
        ("pa_hmdb51", '{"a.avi": 3}', "a.avi should be {attribute: [[first, last, value], …]}"),
        ("pa_hmdb51", '{"a.avi": {}}', "a.avi: skin_color should be [[first, last, value], …], not null"),
        *(("pa_hmdb51", made_hmdb51.pa_json("sit", face=ranges), f"goo_0.avi: face{message}") for ranges, message in (
            ([], " should be [[first, last, value], …], not []"),
            ([[5, 4, 1]], ": frames 5 to 4 are no range"),
            ([[-1, 4, 1]], ": frames -1 to 4 are no range"),
            ([[0, 10**12, 1]], ": frames 0 to 1000000000000 are no range"),
            ([[0, 4]], ": [0, 4] should be [first, last, value], in whole numbers"),
            ([[0, 4.5, 1]], ": [0, 4.5, 1] should be [first, last, value], in whole numbers"),
            ([[0, 4, "yes"]], ': [0, 4, "yes"] should be'),
            ([[0, 4, []]], ": [0, 4, []] should be"),
            ([7], ": 7 should be [first, last, value]"),
        )),
        ("celebv_hq", "[]", 'should be {"meta_info": {"appearance_mapping'),
        ("celebv_hq", '{"clips": {}}', 'should be {"meta_info": {"appearance_mapping'),
        ("celebv_hq", '{"meta_info": {"appearance_mapping": []}, "clips": 3}', 'should be {"meta_info": {"appeara'),
        ("celebv_hq", '{"meta_info": {"appearance_mapping": []}, "clips": {}}', "names no clips"),
        ("celebv_hq", made_celebv_hq.info({"a_0": face(0)}, made_celebv_hq.NAMES[:-1]),
         "appearance_mapping has no 'brown_hair' among its 5 names"),
        *(("celebv_hq", made_celebv_hq.info({name: about}), message) for name, about, message in (
            ("a_0", face(0) | {"ytb_id": "short"}, "clip 'a_0': ytb_id is an id of YouTube, 11 letters, not 'short'"),
            ("a_0", face(0) | {"attributes": {}}, "clip 'a_0': ytb_id, and attributes with appearance and emotion are"),
            ("a_0", "text", "clip 'a_0': ytb_id, and attributes"),
            ("../a_0", face(0), "a clip is called M2Ohb0FAaJU_1 or the like, not '../a_0'"),
            ("a_0", face(0, appearance=(0, 1)), "clip 'a_0': appearance is 6 numbers of 0 or 1, one "),
            ("a_0", face(0, appearance=(0, 1, 2, 0, 0, 0)), "clip 'a_0': appearance is 6 numbers of 0 or 1"),
            ("a_0", emotion("bored"), "no expression is called 'bored'; "),
            ("a_0", emotion([], changes=True), "or as a list with start_sec before end_sec"),
            ("a_0", emotion([{"emotion": "sad", "start_sec": 2, "end_sec": 1}], changes=True), "start_sec before"),
        )),
        ("thumos14", "[1]", "is JSON of another form: it should be {"),
        ("thumos14", '{"video_test_0000004": {"events": []}}', "is JSON of another form"),
        ("thumos14", '{"video_test_0000004": {"annotations": [{"label": "Diving"}]}}', "is JSON of another form"),
        ("thumos14", '{"video_test_0000004": {"annotations": [], "frames": "many"}}', "has 'many' frames, which shou"),
        ("thumos14", event(segment=[1]), "two times in seconds"),
        ("thumos14", event().replace("video_test_0000004", "holiday"), "not 'holiday'"),
        *(("thumos14", json.dumps(made_thumos14.database(EVENTS | {TESTED[0]: [changed]}, frames=50)), message)
          for changed, message in (
            ((2, 1, "Diving"), f"{TESTED[0]}: Diving ends at 1, before it begins at 2"),
            ((1, 1, "Diving"), f"{TESTED[0]}: Diving ends at 1, before it begins at 1"),
            ((-1, 1, "Diving"), f"{TESTED[0]}: an event has two times in seconds and a class, not "),
            (("x", 1, "Diving"), f"{TESTED[0]}: an event has two times in seconds and a class, not "),
            ((1, float("nan"), "Diving"), f"{TESTED[0]}: an event has two times in seconds and a class, not "),
            ((1, 2, "Juggling"), f"{TESTED[0]}: no class is called 'Juggling'; there are BaseballPitch, "),
            ((1, 9, "Diving"), f"{TESTED[0]}: Diving ends at 9 s, but 50 frames are over after 2.5 s at the latest"),
        )),
        ("vispr", '{"tags": []}', 'names no labels: it should be {"labels": ["a4_gender", …]}'),
        ("vispr", '["a4_gender"]', "names no labels"),
        ("vispr", '{"labels": []}', '["a0_safe"] where there is nothing, not []'),
        ("vispr", '{"labels": "a4_gender"}', "labels are"),
        ("vispr", '{"labels": ["gender"]}', "not ['gender']"),
    ],
)  # fmt: skip
def test_json_of_another_form_is_refused(tmp_path, key, content, message):
    refused(tmp_path, key, content, message)


FIVE = "'sit/a.mp4' should have an array of 5 labels, each 0 or 1"
SEVEN = "'2017_1000' should have an array of 7 labels, each 0 or 1"


def walks(name: object, frames: int) -> bytes:
    """An archive of silhouettes with the pixels of one frame."""
    file = io.BytesIO()
    np.savez(file, names=np.array([name]), counts=np.array([frames]), bits=np.zeros(512, np.uint8))
    return file.getvalue()


def unmatrix() -> bytes:
    """A compressed element of a .mat file that is no matrix."""
    packed = zlib.compress(struct.pack("<II", 9, 8) + bytes(8))
    return struct.pack("<II", 15, len(packed)) + packed


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("key", "content", "message"),
    [
        ("casia_a_gait", walks("a/00_1", 2), "its names, counts and bits do not fit together"),
        ("casia_a_gait", walks("a 1", 1), "walks are called person/view_repetition, not 'a 1'"),
        ("casia_a_gait", walks({}, 1), "cannot be read: it should hold names, counts and bits"),  # needs unpickling
        ("hmdb51 labels", pickle.dumps({"sit/a.mp4": np.ones((1, 5), int)})[:-20], "is no readable pickle of arrays"),
        ("hmdb51 labels", pickle.dumps([np.ones(5)]), "should be {'Class/clip.mp4': array (1, 5)}"),
        ("hmdb51 labels", pickle.dumps({"sit/a.mp4": np.ones((1, 4), int)}), FIVE),
        ("hmdb51 labels", pickle.dumps({"sit/a.mp4": np.full((1, 5), 7)}), FIVE),
        ("hmdb51 labels", pickle.dumps({"sit/a.mp4": np.array([list("abcde")])}), FIVE),
        ("vispr labels", pickle.dumps({"2017_1000": np.ones(7)})[:-20], "is no readable pickle of arrays"),
        ("vispr labels", pickle.dumps([np.ones(7)]), "should be {'2017_10001018': array (7,)}"),
        ("vispr labels", pickle.dumps({"2017_1000": np.ones(6)}), SEVEN),
        ("vispr labels", pickle.dumps({"2017_1000": np.ones((1, 7))}), SEVEN),
        ("vispr labels", pickle.dumps({"2017_1000": np.full(7, 0.5)}), SEVEN),
        ("vispr labels", pickle.dumps({"2017_1000": np.ones(7)}), "has no labels of 2017_1001, which is a picture of"),
        ("vispr labels", pickle.dumps(Path("a")), "is refused"),
        ("avenue masks", lambda data: data[:-40], "is damaged: take it from the set again"),
        ("avenue masks", lambda data: data[:128] + bytes(range(1, 17)), "is damaged"),
        ("avenue masks", lambda data: data[:128] + unmatrix(), "is damaged"),
        ("avenue masks", lambda data: data[:128] + b"\x0e\0\0\0\xff\xff\xff\x7f", "is damaged"),
        ("avenue masks", lambda data: b"MATLAB 7.3" + data[10:], "is of MATLAB 7.3, which is not read: save it there"),
        ("avenue masks", lambda data: b"PK" + data[2:126] + b"MI", "is no .mat file of MATLAB 5 to 7"),
        ("avenue masks", lambda data: data[:60], "is no .mat file of MATLAB 5 to 7"),
    ],
)  # fmt: skip
def test_arrays_of_another_form_are_refused(tmp_path, key, content, message):
    refused(tmp_path, key, content, message)


@pytest.mark.parametrize("array", [np.array([0, 2]), np.zeros((2, 2)), np.zeros(0), np.array([{}])])
def test_labels_per_frame_are_a_row_of_0_and_1(tmp_path, array):
    made_avenue.made(tmp_path)
    np.save(tmp_path / FILES["avenue labels"][2], array, allow_pickle=True)
    with pytest.raises(DataError, match=r"2_label\.npy .*an array \(T,\) of 0 and 1"):
        load_data("avenue", root=tmp_path, frames=4, size=28)
