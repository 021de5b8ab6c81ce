"""The table next to a store: what is written is read again, and whatever makes no sense is one line."""

from dataclasses import replace

import numpy as np
import pytest

from tests.data.features.made import ABOUT, Maker, ids, store
from tests.evaluation.toy import toy
from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.data.features.labels import FILE, FeatureRows, labelled, write_labels
from vidveil.data.store.features import fill


@pytest.fixture
def seven(tmp_path):
    return store(tmp_path / "set")


def table(store, *lines, head="id,split,action", count=7):
    """One line per video; the given lines replace the first ones."""
    rows = [*lines, *(f"video {i},train,walk" for i in range(len(lines), count))]
    (store.folder / FILE).write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return store


def refused(store, message):
    with pytest.raises(DataError, match=message) as error:
        labelled(store)
    assert "\n" not in str(error.value)


def test_what_is_written_is_read_again_in_every_column(tmp_path):
    plain = toy(people=(3, 2, 2), clips=4)
    attributes = np.concatenate([plain.attributes, 1 - plain.attributes], axis=1)
    attributes[::3, 1] = np.nan
    person = plain.person.copy()
    person[-1] = -1
    data = replace(
        plain,
        person=person,
        attributes=attributes,
        attribute_names=("bright", "hat, or cap"),
        gallery="other action",
        tags={"outfit": np.arange(len(plain)) % 3 - 1, "camera": plain.person * 100},
    )
    made = fill(tmp_path / "set", ABOUT, data.ids, Maker())
    write_labels(data, made.folder / FILE)
    found = labelled(made)
    assert found.name == "set"
    for name in ("split", "group", "person", "attributes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name), err_msg=name)
        assert getattr(found, name).dtype.kind == getattr(data, name).dtype.kind
    assert [found.actions[i] for i in found.action] == [data.actions[i] for i in data.action]
    assert sorted(found.actions) == sorted(data.actions)
    assert list(found.ids) == list(data.ids)
    assert list(found.attribute_names) == list(data.attribute_names)
    assert found.gallery == "other action"
    assert found.tags.keys() == data.tags.keys()
    for name, values in data.tags.items():
        np.testing.assert_array_equal(found.tags[name], values)
    assert not list(made.folder.glob("*.part"))


def test_an_action_that_nobody_knows_stays_unknown_and_is_no_action_of_its_own(tmp_path):
    data = toy(people=(2, 1, 1), clips=2)
    action = data.action.copy()
    action[::3] = -1
    made = fill(tmp_path / "set", ABOUT, data.ids, Maker())
    write_labels(replace(data, action=action), made.folder / FILE)
    found = labelled(made)
    assert sorted(found.actions) == ["down", "right"]
    np.testing.assert_array_equal(found.action < 0, action < 0)


def test_lines_may_come_in_any_order_and_name_more_videos(seven):
    lines = [f"video {i},train,{'walk' if i % 2 else 'run'}" for i in reversed(range(9))]
    found = labelled(table(seven, *lines))
    assert list(found.ids) == ids(7)
    assert [found.actions[i] for i in found.action] == ["run", "walk"] * 3 + ["run"]


def test_id_split_and_action_are_enough(seven):
    found = labelled(table(seven, "video 0,test,walk", "video 1,val,walk"))
    assert isinstance(found, ClipSet)
    assert found.split.tolist() == ["test", "val"] + ["train"] * 5
    assert found.group.tolist() == ids(7)
    assert found.person.tolist() == [-1] * 7
    assert found.attributes.shape == (7, 0)
    assert found.gallery == "any"
    assert found.tags == {}


def test_people_may_be_words_and_nobody_is_minus_one(seven):
    people = ["zoe", "ann", "", "ann", "-1", "zoe", "bob 2"]
    lines = [f"video {i},train,walk,{person}" for i, person in enumerate(people)]
    found = labelled(table(seven, *lines, head="id,split,action,person")).person
    assert found[0] == found[5]
    assert found[1] == found[3]
    assert len({found[0], found[1], found[6]}) == 3
    assert found[[0, 1, 6]].min() >= 0
    assert found[[2, 4]].tolist() == [-1, -1]


@pytest.mark.parametrize("person", ["--5", "²", "9" * 30])
def test_people_that_only_look_like_numbers_are_words(seven, person):
    found = labelled(table(seven, f"video 0,train,walk,{person}", head="id,split,action,person")).person
    assert found.tolist() == [0] + [-1] * 6


def test_numbers_of_people_are_kept(seven):
    lines = [f"video {i},train,walk,{person}" for i, person in enumerate([12, 7, -1, 7, 300, 0, 1])]
    found = labelled(table(seven, *lines, head="id,split,action,person")).person
    assert found.tolist() == [12, 7, -1, 7, 300, 0, 1]


@pytest.mark.parametrize(
    ("line", "head", "message"),
    [
        ("video 0,training,walk", "id,split,action", "no split is called training"),
        ("video 0,train,walk,often", "id,split,action,attribute:hat", "attributes and tags are numbers"),
        ("video 0,train,walk,red", "id,split,action,tag:outfit", "attributes and tags are numbers"),
        ("video 0,train,walk," + "9" * 30, "id,split,action,tag:outfit", "attributes and tags are numbers"),
        ("video 0,train,walk,everywhere", "id,split,action,gallery", "a gallery is any, same action, .*'everywhere'"),
        ("video 0,train,walk", "id,split,what", "has no column 'action'"),
        ("video 0,train", "id,split,action", "line 2 ends before its action"),
        ("video 0,train,run, then walk", "id,split,action", "line of video 0 has more fields than the first line"),
        ("video 1,train,walk", "id,split,action", "names video 1 twice"),
        ("video 9,train,walk", "id,split,action", "does not name video 0$"),
    ],
)
def test_a_table_that_makes_no_sense_is_one_line(seven, line, head, message):
    refused(table(seven, line, head=head), message)


def test_videos_that_the_table_does_not_name_are_counted(seven):
    refused(table(seven, count=4), "does not name video 4 and 2 more")


def test_a_person_or_group_in_two_splits_is_refused_as_everywhere(seven):
    lines = ["video 0,train,walk,g", "video 1,test,walk,g"]
    refused(table(seven, *lines, head="id,split,action,group"), "the group of video 1 is in both train and test")


def test_without_a_table_or_with_one_that_is_no_text_the_file_is_named(seven):
    refused(seven, r"has no labels\.csv")
    (seven.folder / FILE).write_bytes(b"\xff\xfe\x00")
    refused(seven, r"labels\.csv cannot be read")
    (seven.folder / FILE).write_text("id,split,action\n")
    refused(seven, r"labels\.csv lists nothing")


def test_no_two_videos_of_a_store_are_the_same_and_none_can_be_shown(seven):
    rows = FeatureRows(seven)
    assert len(rows) == 7
    assert len({rows.digest(i) for i in range(7)}) == 7
    with pytest.raises(DataError, match="holds features, no pictures: video 3"):
        rows.frames(3)
