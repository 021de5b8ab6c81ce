"""Copies of datasets that lack something: the error names what is missing, and says what to do."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.data import (
    made_avenue,
    made_casia,
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
from tests.data.made_thumos14 import TESTED
from tests.data.made_ucf_crime import TRAIN
from vidveil.core.errors import DataError
from vidveil.data import load_data

Make = Callable[[Path], Any]


def hmdb51(root: Path) -> None:
    made_hmdb51.vp(made_hmdb51.hmdb(root, film=False))
    (root / "hmdb51" / "wave" / made_hmdb51.clip("Beta", "wave")).touch()


def pa_hmdb51(root: Path) -> None:
    hmdb51(root)
    made_hmdb51.pa(root)


def kinetics400(root: Path) -> None:
    made_kinetics400.lists(made_kinetics400.made(root), "val", place="annotations")


def p_hvu_in_test_alone(root: Path) -> None:
    folder = made_p_hvu.made(root)
    video = made_p_hvu.video("val", 0)
    made_p_hvu.listed(folder, "train", [f"{made_p_hvu.WHOLE},{video},30,40"])
    (folder / "train" / f"{video}_000030_000040.mp4").write_bytes(b"video")


def thumos14(root: Path) -> None:
    made_thumos14.as_json(made_thumos14.videos(root))


def thumos14_lists(root: Path) -> None:
    made_thumos14.as_lists(made_thumos14.videos(root))


def ucf_crime(root: Path) -> None:
    made_ucf_crime.lists(made_ucf_crime.made(root))


def casia_b(root: Path, people: tuple[int, ...] = (1, 2, 3)) -> None:
    for person in people:
        made_casia.walk(root, f"{person:03d}/nm-01/000")


def people(make: Make, *numbers: int) -> Make:
    """A set of these people alone."""
    return lambda root: make(root, people=numbers)  # type: ignore[call-arg]


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("spec", "make", "gone", "message"),
    [
        ("avenue", made_avenue.made, "Avenue Dataset", "no Avenue Dataset/training_videos or"),
        ("avenue", made_avenue.made, "*/*/2_label.mat", "2_label.mat in"),
        ("avenue", made_avenue.made, "*/training_videos/02.avi", "training_videos has no 02.avi: unpack the set again"),
        ("casia_b", casia_b, "*/00*/*/*/*.png", "3 of 3 walks have no .png, "),
        ("casia_b", casia_b, "*/00*", "0 of 0 walks have no .png, there is no 001/nm-01/000 or the like"),
        ("casia_b", casia_b, "", "casia_b: of the people here nobody is tested"),
        ("hmdb51", hmdb51, "test*", "no testTrainMulti_7030_splits or hmdb51/testTrainMulti_7030_splits in"),
        ("hmdb51:2", hmdb51, "", "has no file CLASS_test_split2.txt: it should have one for each class"),
        ("hmdb51", hmdb51, "*/wave_test_split1.txt", "has no wave_test_split1.txt, but "),
        ("pa_hmdb51", pa_hmdb51, "*.pickle", "no hmdb51_privacy_attribute_label.pickle or "),
        ("pa_hmdb51", pa_hmdb51, "*/*/wave.json", "has no wave.json, or no video in it: PA-HMDB51 has one for each"),
        ("pa_hmdb51", pa_hmdb51, "*/*/*.json", "labels no video: it should hold PA-HMDB51's files, one CLASS.json"),
        ("kinetics400", kinetics400, "*/train", "no kinetics400/train in"),
        ("kinetics400", kinetics400, "*/val/*/*", "val holds no video: CLASS/ID_000012_000022.mp4 and so on belong"),
        ("ntu60", people(made_ntu60.ntu), "", "holds no .avi file: videos such as S001C001P001R001A001_rgb.avi belong"),
        ("ntu60", people(made_ntu60.ntu, 1, 2, 4), "", "ntu60:subject: of the people here nobody is tested"),
        ("ntu60", people(made_ntu60.ntu, 1, 3), "", "of P001 none can be spared: each action needs two people"),
        ("toyota", people(made_toyota.smarthome), "", "mp4 holds no .mp4 file: videos such as Cook.Cleandishes_p02"),
        ("toyota", people(made_toyota.smarthome, 3, 4, 6), "", "toyota: of the people here nobody is tested; unpack"),
        ("toyota", people(made_toyota.smarthome, 2, 10), "", "of nobody none can be spared"),
        ("p_hvu", made_p_hvu.made, "*/*Train*", "no hvu/HVU_Train_V1.0.csv or hvu/annotations/HVU_Train_V1.0.csv in"),
        ("p_hvu", made_p_hvu.made, "*/val/*", "none of the 2 videos that "),
        ("p_hvu", p_hvu_in_test_alone, "", "that are there are in test, too: nothing is left to train on"),
        ("thumos14", thumos14, "thumos14", "no thumos14 or THUMOS14 in"),
        ("thumos14", thumos14, "*/*.json", "thumos14 has no annotations: thumos14.json, or CLASS_val.txt and"),
        ("thumos14", thumos14, f"*/*/{TESTED[1]}.mp4", "thumos14: 1 of 6 videos are not in "),
        ("thumos14", thumos14, "*/*/*.mp4", "0000052.mp4, video_validation_0000053.mp4 and 1 more; they belong in"),
        ("thumos14", thumos14_lists, "*/*/*/[DS]*t*_val.txt", "2 of 40 lists are missing"),
        ("ucf101:2", lambda root: made_ucf101.ucf(root, film=False), "", "trainlist02.txt cannot be read: it comes"),
        ("ucf_crime", ucf_crime, "UCF_Crimes", "no UCF_Crimes or UCF-Crime or UCF_Crime or ucf_crime in"),
        ("ucf_crime", ucf_crime, "*/*/Anomaly_Train.txt", "there is no Anomaly_Train.txt in "),
        ("ucf_crime", ucf_crime, "*/*/Temporal*", "there is no Temporal_Anomaly_Annotation_for_Testing_Videos.txt"),
        ("ucf_crime", ucf_crime, f"*/*/{TRAIN[3]}", "1 of 10 videos are not in "),
        ("ucf_crime", ucf_crime, "*/*/[ATR][!b]*/*.mp4", "they belong in"),
        ("ucsd:ped2", made_ucsd.ped, "*/*/Test/Test002/050.tif", "Test002 has no 050.tif: pictures are numbered"),
        ("ucsd:ped2", made_ucsd.ped, "*/*/Train/Train002", "Train has no Train002: unpack the set again"),
        ("ucsd:ped2", made_ucsd.ped, "*/*/Test/*.m", "UCSDped2.m cannot be read"),
        ("ucsd:ped1", made_ucsd.ped, "", "UCSDped1/Train cannot be listed: it should hold folders Train001, Train002"),
        ("vispr", made_vispr.made, "*/val2017*", "no vispr/val2017 or vispr/images/val2017 in"),
        ("vispr", made_vispr.made, "*/train2017/*.json", "train2017 has no .json, and no "),
        ("vispr", made_vispr.made, "*/val2017/*.json", "and released vectors are of train2017 and test2017 only: put"),
        ("vispr", made_vispr.made, "*/val2017/2017_2001.json", "lacks 1 of 2 annotations, 2017_2001.json first"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(tmp_path, spec, make, gone, message):
    make(tmp_path)
    found = list(tmp_path.glob(gone)) if gone else []
    assert found or not gone
    for path in found:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(DataError, match=re.escape(message)):
        load_data(spec, root=tmp_path, frames=4, size=28)


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("spec", "make", "file", "message"),
    [
        ("avenue", made_avenue.made, "Avenue Dataset/testing_videos/holiday.avi", "it should look like 01.avi"),
        ("ntu60", made_ntu60.ntu, "nturgb+d_rgb/S1C1P1R1A1_rgb.avi", "look like S001C001P001R001A001_rgb.avi"),
        *(("ntu60", made_ntu60.ntu, f"nturgb+d_rgb/{made_ntu60.name(**{what: number})}", f"has {what} 1 to {most}, not")
          for what, number, most in (("setup", 0, 17), ("camera", 4, 3), ("performer", 0, 40), ("replication", 3, 2),
                                     ("action", 61, 60))),
        ("toyota", made_toyota.smarthome, "toyota_smarthome/mp4/Walk_p02_r00_v11.mp4", "look like Cook.Cleandishes_p0"),
        ("toyota", made_toyota.smarthome, "toyota_smarthome/mp4/_p02_r00_v11_c01.mp4", "look like Cook.Cleandishes_p0"),
        ("toyota", made_toyota.smarthome, "toyota_smarthome/mp4/Walk_p05_r00_v11_c01.mp4", "no subject is called p05"),
        ("toyota", made_toyota.smarthome, "toyota_smarthome/mp4/Walk_p02_r00_v11_c08.mp4", "there are c01 to c07"),
        ("kinetics400", made_kinetics400.made, "kinetics400/train/air_drumming/holiday.mp4", "has no name of Kinetics"),
        ("kinetics400", made_kinetics400.made, f"kinetics400/train/{made_kinetics400.file('train', 0, 9)}",
         "is in no folder of a class: put it into train/CLASS, or train.csv with"),
    ],
)  # fmt: skip
def test_a_file_with_a_name_that_cannot_be_is_named(tmp_path, spec, make, file, message):
    make(tmp_path)
    (tmp_path / file).write_bytes(b"video")
    with pytest.raises(DataError, match=re.escape(message)) as error:
        load_data(spec, root=tmp_path, frames=4, size=28)
    assert str(tmp_path / file) in str(error.value)
