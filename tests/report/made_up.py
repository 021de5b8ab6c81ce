"""Results as an evaluation leaves them, with numbers that nobody measured; and with clips, whose means they are."""

import numpy as np
from safetensors.numpy import save_file

from vidveil.evaluation.results import Metric, Point, Results


def metric(value, floor, **more):
    values = {
        "kind": "leakage",
        "value": value,
        "seeds": [value - 0.01, value + 0.01],
        "interval": [value - 0.04, value + 0.05],
        "floor": floor,
        "floor_range": [floor - 0.01, floor + 0.02],
        "floor_analytic": floor,
        "measured_by": "resnet_tiny, LDA",
    }
    return Metric(**values | more)


def around(name, value):
    """A share and its interval."""
    return {name: value, f"{name}_interval": [value - 0.1, value + 0.2]}


def point(method, keep=None, *, utility=0.95, link=0.80, attributes=1.0, verdict="identities leak", **more):
    """Raw top-1 is 0.95, raw linkage 0.80 with a floor of 0.03."""
    excess = (link - 0.03) / 0.77
    floor = {"floor_range": [0.06, 0.06], "measured_by": "r3d_tiny"}
    tried = {"resnet_tiny, LDA": {"val": 0.7, "test": link}, "r3d_tiny, cosine": {"val": 0.6, "test": link + 0.01}}
    raw_number = {"raw": 0.80, "raw_interval": [0.76, 0.85], "others": tried}
    metrics = {
        "action_top1": metric(utility, 0.06, kind="utility", raw=0.95, **around("retention", utility / 0.95), **floor),
        "linkage_rank1": metric(link, 0.03, p=0.000999, **around("excess", excess), **raw_number),
        "ap_skin_colour": metric(0.7, 0.4, note="two views"),
    }
    together = {} if attributes is None else around("attribute_excess", attributes)
    values = together | {"not_measurable": ["nudity"], "constant": ["gender"], "verdict": verdict}
    return Point(**{"method": method, "keep": keep, "metrics": metrics} | values | more)


def results(name="raw_puppets", points=(), **more):
    values = {
        "recipe": {},
        "data": {"name": "puppets", "fingerprint": "ab" * 32, "clips": {"test": 720}, "people": {"test": 36}},
        "machine": {"device": "cpu", "commit": "1234567"},
        "seconds": 800.4,
        "raw": point("raw"),
        "points": list(points),
        "controls": {"background_rank1": metric(0.031, 0.03, kind="control")},
    }
    return Results(name=name, **values | more)


def sweep(name, loss):
    """A method with a knob: the less it keeps, the less it leaks."""
    settings = [(keep, 0.95 - 0.3 * loss * (1 - keep) ** 2, 0.80 - loss * (1 - keep)) for keep in (0.9, 0.7, 0.5, 0.3)]
    points = [point(name, keep, utility=utility, link=link, attributes=keep) for keep, utility, link in settings]
    return results(name, points)


PEOPLE, CLIPS = 20, 10
FLOOR = 0.1


def share(of_ten, people=PEOPLE):
    """Hits (N,): so many of the ten clips of a person, for all people or for each."""
    return (np.arange(CLIPS) < np.broadcast_to(of_ten, people)[:, None]).astype(np.float32).ravel()


def on_disk(folder, name, settings, *, raw=(10, 9), people=PEOPLE, change=None, **more):
    """`folder/name` with results.json and per_clip.safetensors; the path of the former, and what is in it.

    A setting is (keep, hits in action, hits in linkage): of ten clips of a person, or arrays (S, N). The floor of
    linkage is 0.1 and raw video has 1 and 0.9 by default, so the excess is (hits / 10 - 0.1) / 0.8. A fourth entry is
    the excess of attributes, the same in each of 2,000 draws of people, or an array of what it is in each.
    """
    clips = {"people": np.repeat(np.arange(people), CLIPS)}

    def setting(method, keep, utility, link, attributes=None):
        tag = method if keep is None else f"{method}-{keep:g}"
        metrics = {}
        for key, hits, floor in (("action_top1", utility, 0.0), ("linkage_rank1", link, FLOOR)):
            if hits is None:
                continue
            values = hits if np.ndim(hits) and np.shape(hits)[-1] == people * CLIPS else share(hits, people)
            clips[f"{tag}/{key}"] = np.atleast_2d(values).astype(np.float32)
            seeds = [float(row.mean()) for row in clips[f"{tag}/{key}"]]
            metrics[key] = metric(float(np.mean(seeds)), floor, seeds=seeds)
        if link is not None:
            clips[f"{tag}/linkage_rank1/chance"] = np.full(people * CLIPS, FLOOR, np.float32)
        if attributes is not None:
            draws = np.full(2000, attributes, float) if np.ndim(attributes) == 0 else np.asarray(attributes, float)
            clips[f"{tag}/attribute_excess/draws"], attributes = draws, float(draws.mean())
        return Point(method=method, keep=keep, metrics=metrics, attribute_excess=attributes)

    made = results(name, [setting(name, *one) for one in settings], raw=setting("raw", None, *raw), controls={}, **more)
    if change:
        change(clips)
    (folder / name).mkdir(parents=True)
    save_file(clips, folder / name / "per_clip.safetensors")
    path = folder / name / "results.json"
    made.write(path)
    return path, made
