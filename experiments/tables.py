"""Tables on pages, generated from committed results.

    python -m experiments.tables            rewrites the tables of all pages
    python -m experiments.tables --check    lists pages whose tables differ from the results; exit code 1 if any do

A table stands between `<!-- table NAME -->` and `<!-- end table -->`. Each study lists its tables by name in `TABLES`.
"""

import argparse
import re
from pathlib import Path

from experiments import benchmark_tables
from experiments.dual_cls import page as dual_cls
from experiments.real_video import page as real_video
from experiments.splavu import gait_bias, tasks_page
from experiments.splavu import page as splavu
from experiments.stprivacy import page as stprivacy

ROOT = Path(__file__).parents[1]
STUDIES = (benchmark_tables, dual_cls, stprivacy, real_video, splavu, tasks_page, gait_bias)
TABLES = {name: table for study in STUDIES for name, table in study.TABLES.items()}
"""Name → a function without arguments that returns the table as Markdown."""
MARKED = re.compile(r"<!-- table (\S+) -->\n.*?<!-- end table -->", re.DOTALL)


def pages() -> list[Path]:
    """The README, the documentation, and the pages next to results."""
    return [
        ROOT / "README.md",
        *(page for name in ("docs", "experiments") for page in sorted((ROOT / name).rglob("*.md"))),
    ]


def with_tables(text: str) -> str:
    """A page with its tables as results have them."""
    if text.count("<!-- table ") != len(MARKED.findall(text)):
        raise ValueError("a table has no <!-- end table -->")
    return MARKED.sub(lambda found: f"<!-- table {found[1]} -->\n{TABLES[found[1]]()}\n<!-- end table -->", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="list the pages that differ, and change none")
    options = parser.parse_args()
    different = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (made := with_tables(text)) != text:
            different.append(page)
            print(page.relative_to(ROOT))
            if not options.check:
                page.write_text(made, encoding="utf-8")
    if options.check and different:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
