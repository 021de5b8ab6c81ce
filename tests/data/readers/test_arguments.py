"""What may be behind the colon of a dataset's name is checked before anything is read."""

import pytest

from vidveil.core.errors import UsageError
from vidveil.data.catalogue import DATA

NONE_TAKEN = ("avenue", "kinetics400", "surveillance_fight", "thumos14", "toyota", "ucf_crime")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        *((f"{name}:2", f"{name} takes nothing after a colon, not '2'") for name in NONE_TAKEN),
        *((f"{name}:4", f"{name} has the splits 1, 2 and 3, not '4'") for name in ("hmdb51", "ucf101", "ucf101_5")),
        *(
            (f"weizmann:{argument}", "weizmann leaves out people=0, 1, 2 or actions=0, 1, 2, not")
            for argument in ("people=3", "faces", "actions=x", "people=0=1")
        ),
        ("casia_a_gait:all", "casia_a_gait takes people or nothing after a colon, not 'all'"),
        ("casia_b:people", "casia_b takes all or nothing after a colon, not 'people'"),
        ("celebv_hq:x", "celebv_hq takes the number of a draw of its split, not 'x'; write celebv_hq:1"),
        ("ntu60:setup", "ntu60 takes subject, view, bias_f or bias_m after a colon, not 'setup'"),
        ("p_hvu:actions", "p_hvu hides both, objects or scenes, often or every, not 'actions'; write p_hvu:scenes"),
        ("p_hvu:scenes,all", "p_hvu hides both, objects or scenes, often or every, not 'scenes,all'"),
        ("pa_hmdb51:1", "pa_hmdb51 takes frames or frames_60_40 after a colon, not '1'"),
        ("ucsd:ped3", "ucsd has ped1 and ped2, not 'ped3'; write ucsd:ped1"),
        ("vispr:68", "vispr has 7 or 5 attributes, not '68'; write vispr:5"),
    ],
)
def test_another_argument_is_refused(tmp_path, spec, message):
    name, _, argument = spec.partition(":")
    with pytest.raises(UsageError, match=message):
        DATA[name].load(argument, root=tmp_path / "nowhere", frames=4, size=28, seed=0)
