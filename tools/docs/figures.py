#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Check the figures that sentences of documents quote against results/.

    figures.py [--show] FILE...    --show prints the values of all claims

A comment directly behind a paragraph, list or table says which results the paragraph quotes:

    RTTs are 62 us at p99 with timely, 817 us with cubic, 13 times as long.
    <!-- figures table1
    # us at p99 = rtt_us.p99 of timely
    # us with cubic, # times = rtt_us.p99 of all(cubic, cubic / timely)
    given 40 20
    -->

The first line names the results that a claim does not name itself. Each further line is a claim, or `in` with the
results of the claims behind it, or `given` with numbers of the paragraph that are not results: parameters, limits,
the paper's figures. A line that starts with a space continues the line before.

A claim is TEXT = [FIGURE of] EXPRESSION. TEXT is the paragraph's text with # for each number. Claims are in the
order of the text, and each number without a claim has to be given. FIGURE is the path of a figure in a cell of
summary.json, "FIGURE, all seeds" stands for its values instead of their median; or FIGURE is the title of a
table's column. "Quotes" keep the word of in both. EXPRESSION has one value for each # and may have:

    CELL, RESULT:CELL, CELL@FIGURE    medians over the seeds, of cells that have the figure. RESULT is a directory of results/ or one of its tables,
                                      as in bench-ack/one.md, in which CELL is the texts of a row's first columns.
                                      All may have wildcards and {ALTERNATIVES,..}; "quotes" keep spaces, commas
                                      and a lone "*"
    + - * / ( ) and numbers           with spaces around each operator; for each value of a list. A number may have a
                                      unit, as in 16.95Gb/s; in quotes it is a cell's name
    more(A, B), less(A, B)            A / B - 1 and 1 - A / B
    low(A, B...), high(A, B...)       the lowest and the highest of A, B ..., for each value of the lists; of A alone,
                                      the lowest and the highest of its values
    all(A, B...), ends(A, B...)       all values; the lowest and the highest of all values

A value has to be the text's number when rounded to as many digits; behind "about" zeros at the end are no digits.
Units of time and rate are converted to the unit in the text, and ratios to % where the text has %. A number without
a unit has that of the next number of the claim. Figures of tables have no units: / 1000 converts them.

In manual pages each line of the comment starts with .\\" and a space.

Numbers in `code`, link targets, names (p99, Fig. 3, section 4) and behind "commit" are no figures. A paragraph
with "**Verdict" and numbers must have a comment.
"""
import fnmatch
import itertools
import math
import operator
import os
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from recorded import TOP, cells, values

NUMBER = r"(?<![\w.'/+-])(?:\d{1,3}(?: \d{3})+|\d+(?:\.\d+)?|\.\d+)(?![\w'/]|\.\d|-\w)"
NO_FIGURES = re.compile(
    r"<!--.*?-->|`[^`]*`|\]\([^)]*\)|\b\w+\(\d\)|"
    r"(?:Figs?\.|Tables?|Algorithms?|sections?|rows?|commits?|Debian|Linux|RFC|kernels?)"
    r"\s+[\d.]+[\da-f]*(?:(?:,| to| and)\s+\d+)*|\b\d+\.\d+\.\d+[\d./]*", re.S)
COMMENT = re.compile(r"<!-- figures(.*?)-->", re.S)
UNITS = {"ns": ("time", 1e-9), "us": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1.0),
         "kb/s": ("rate", 1e3), "Mb/s": ("rate", 1e6), "Gb/s": ("rate", 1e9), "": ("ratio", 1.0), "%": ("ratio", .01)}
UNIT_OF_PATH = {"ns": "ns", "us": "us", "ms": "ms", "s": "s", "gbit": "Gb/s", "mbit": "Mb/s"}
# The unit of a table's column without a known one: values are compared as they are.
ANY = "?"


class Stale(Exception):
    """A claim that results/ does not support, or a comment that makes no sense."""


@dataclass(frozen=True)
class Values:
    """Values with a unit, as a list on which arithmetic works value by value."""
    list: list[float]
    unit: str = ""

    def __str__(self) -> str:
        return f"{', '.join(f'{value:.4g}' for value in self.list)} {self.unit.strip(ANY)}".rstrip()

    def each(self, other: "Values | float", compute: Callable[[float, float], float], unit: str) -> "Values":
        """compute() of each pair of values; a list of one value goes with all values of the other one."""
        theirs = other.list if isinstance(other, Values) else [other]
        count = max(len(self.list), len(theirs))
        if {len(self.list), len(theirs)} - {1, count}:
            raise Stale(f"lists of {len(self.list)} and of {len(theirs)} values")
        mine = self.list * (count // len(self.list))
        theirs = theirs * (count // len(theirs))
        return Values([compute(a, b) for a, b in zip(mine, theirs, strict=True)], unit)

    def __add__(self, other: "Values | float") -> "Values":
        return self.each(other, operator.add, self.unit)

    def __sub__(self, other: "Values | float") -> "Values":
        return self.each(other, operator.sub, self.unit)

    def __mul__(self, other: "Values | float") -> "Values":
        return self.each(other, operator.mul, self.unit)

    def __truediv__(self, other: "Values | float") -> "Values":
        return self.each(other, operator.truediv, "" if isinstance(other, Values) else self.unit)

    def __rsub__(self, other: float) -> "Values":
        return Values([other - value for value in self.list], self.unit)

    def __rtruediv__(self, other: float) -> "Values":
        return Values([other / value for value in self.list])


def every(*lists: Values) -> Values:
    """All values of the lists."""
    if len({values.unit for values in lists}) > 1:
        raise Stale("values of different units")
    return Values(list(itertools.chain(*(values.list for values in lists))), lists[0].unit)


def ends(*lists: Values) -> Values:
    """The lowest and the highest of all values."""
    return Values([min(every(*lists).list), max(every(*lists).list)], lists[0].unit)


def fold(choose: Callable[..., float]) -> Callable[..., Values]:
    """A function that applies choose() to the values of one list, or to those of several lists, value by value."""
    def folded(first: Values, *others: Values) -> Values:
        if not others:
            return Values([choose(first.list)], first.unit)
        for other in others:
            first = first.each(other, choose, first.unit)
        return first
    return folded


def more(mine: Values, other: Values) -> Values:
    """How much more the first values are, as a share of the others."""
    return mine / other - 1


def less(mine: Values, other: Values) -> Values:
    """How much less the first values are, as a share of the others."""
    return 1 - mine / other


FUNCTIONS: dict[str, Callable[..., Values]] = {
    "more": more, "less": less, "low": fold(min), "high": fold(max), "all": every, "ends": ends}


def alternatives(text: str) -> Iterator[str]:
    """The texts that a text with {A,B} stands for."""
    found = re.search(r"\{([^{}]*)\}", text)
    if not found:
        yield text
        return
    for choice in found[1].split(","):
        yield from alternatives(text[:found.start()] + choice + text[found.end():])


def of_cells(result: str, cell: str, figure: str) -> Values:
    """The medians of a figure in the cells of a scenario whose names match; the values of "FIGURE, all seeds"."""
    figure, comma, _ = figure.partition(", all seeds")
    names = dict.fromkeys(found["cc"] for found in cells(result) if fnmatch.fnmatchcase(found["cc"], cell))
    found = [values(f"{result}:{name}", figure) for name in names]
    unit = re.search(rf"^(?!gain\.).*?_({'|'.join(UNIT_OF_PATH)})(?![a-z])(?!.*\.count$)", figure)
    shown = itertools.chain(*found) if comma else (statistics.median(seeds) for seeds in found if seeds)
    return Values(list(shown), UNIT_OF_PATH[unit[1]] if unit else "")


def columns_of(header: list[str]) -> dict[str, int]:
    """The columns of a table by title. A title that comes again has the last other one in front of it."""
    columns = {title: len(header) - 1 - number for number, title in enumerate(reversed(header))}
    other = ""
    for number, title in enumerate(header):
        if header.count(title) == 1:
            other = title
        else:
            columns[f"{other} {title}"] = number
    return columns


def of_table(path: str, row: str, column: str) -> Values:
    """The numbers of a column in those rows of a table whose first entries, with spaces between them, match."""
    found: list[float] = []
    units: list[str] = []
    columns: dict[str, int] = {}
    with open(os.path.join(TOP, "results", path), encoding="ascii") as file:
        for line in file:
            entries = [entry.strip() for entry in line.strip().strip("|").split("|")]
            if not line.startswith("|"):
                columns = {}
            elif not columns:
                columns = columns_of(entries)
            elif column in columns and any(fnmatch.fnmatchcase(" ".join(entries[:count]), row)
                                           for count in range(1, len(entries))):
                text = entries[columns[column]].lstrip("*")
                if number := re.match(r"-?[\d.]+", text):
                    found.append(float(number[0]))
                    units.append("%" if "%" in text else ANY)
    return Values(found, units[0] if units else ANY)


def reference(token: str, result: str, figure: str) -> Values:
    """The values that a token of an expression names."""
    where, at, own = token.rpartition("@") if "@" in token else (token, "", "")
    left, colon, right = where.partition(":")
    named, cell = (left, right) if colon else (result, where)
    found = []
    for choice in alternatives(f"{named}:{cell}"):
        source, _, name = choice.partition(":")
        found.append((of_table if source.endswith(".md") else of_cells)(source, name, own if at else figure))
        if not found[-1].list:
            raise Stale(f"results/ has no figure '{own if at else figure}' of {choice}")
    return every(*found)


def evaluate(expression: str, result: str) -> Values:
    """The values of the right side of a claim."""
    with_figure = re.fullmatch(r'(?:"([^"]*)"|(.*?)) of (.*)', expression)
    figure, rest = (with_figure[1] or with_figure[2], with_figure[3]) if with_figure else ("", expression)
    names: dict[str, Values | Callable[..., Values]] = dict(FUNCTIONS)
    code = []
    for token in re.findall(r'(?:"[^"]*"|\{[^}]*\}|[^\s(),"])+|[(),]', rest):
        if re.fullmatch(r"[-+*/(),]|[\d.]+", token) or token in FUNCTIONS:
            code.append(token)
        else:
            number = re.fullmatch(rf"([\d.]+)({'|'.join(UNITS)})", token)
            names[f"v{len(code)}"] = (Values([float(number[1])], number[2]) if number else
                                      reference(token.replace('"', ""), result, figure))
            code.append(f"v{len(code)}")
    try:
        found = eval(" ".join(code), {"__builtins__": {}}, names)   # pylint: disable=eval-used
    except (SyntaxError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise Stale(f"'{expression}' is no expression: {error}") from error
    return found if isinstance(found, Values) else Values([float(found)])


@dataclass(frozen=True)
class Quoted:
    """A number in a document, with the unit behind it."""
    text: str
    unit: str
    about: bool

    def is_value(self, value: float, unit: str) -> bool:
        """Whether a value of a unit is this number, rounded to its digits."""
        if unit != ANY:
            kind, size = UNITS[self.unit]
            if kind != UNITS[unit][0]:
                raise Stale(f"'{self.text} {self.unit}' is not of the unit '{unit}' of the figure")
            value *= UNITS[unit][1] / size
        digits = self.text.replace(" ", "")
        step = 10.0 ** -len(digits.partition(".")[2])
        if self.about and "." not in digits:
            step = 10.0 ** (len(digits) - len(digits.rstrip("0")))
        # Figures taken from a table are rounded twice: hence a bit more than half a step.
        return math.isclose(value, float(digits), rel_tol=0, abs_tol=.55 * step)


def numbers(text: str) -> list[re.Match[str]]:
    """All numbers of a text."""
    return list(re.finditer(NUMBER, text))


def quoted(text: str, found: list[re.Match[str]], unit: str) -> list[Quoted]:
    """Numbers with their units: that of the next number where a number has none, and that of the figure behind all."""
    units = "|".join(re.escape(name) for name in UNITS if name)
    result: list[Quoted] = []
    unit = unit if unit != "%" and unit in UNITS else ""
    for number in reversed(found):
        behind = re.match(rf"\s({units})(?![\w/])", text[number.end():])
        unit = behind[1] if behind else unit
        result.insert(0, Quoted(number[0], unit, text[:number.start()].endswith("about ")))
    return result


def paragraph_before(text: str, end: int) -> str:
    """The paragraph in front of a position, on one line and without what are no figures."""
    begin = text.rfind("\n\n", 0, end) + 2 if "\n\n" in text[:end] else 0
    return " ".join(NO_FIGURES.sub(lambda match: re.sub(r"\d", "_", match[0]), text[begin:end]).split())


def pattern_of(text: str) -> re.Pattern[str]:
    """The expression that finds the text of a claim."""
    return re.compile(f"({NUMBER})".join(re.escape(part) for part in text.split("#")))


def check_comment(comment: str, text: str, show: Callable[[str], object]) -> Iterator[str]:
    """What is wrong with the paragraph of a comment."""
    result, *lines = re.sub(r"\n\s+", " ", comment.rstrip()).split("\n")
    result, position, given = result.strip(), 0, []
    unclaimed = {number.start(): number[0] for number in numbers(text)}
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "given":
            given += rest.split()
            continue
        if word == "in" and " = " not in line:
            result = rest
            continue
        claim, _, expression = line.partition(" = ")
        found = pattern_of(claim.strip()).search(text, position)
        if not found or "#" not in claim:
            yield f"'{claim}' is not in the text, or not behind the claim before"
            continue
        position = found.end()
        starts = [found.start(group + 1) for group in range(claim.count("#"))]
        mine = [number for number in numbers(text) if number.start() in starts]
        for number in mine:
            unclaimed.pop(number.start(), None)
        try:
            right = evaluate(expression.strip(), result)
            said = quoted(text, mine, right.unit)
            shown = f"'{found[0]}': {expression.strip()} = {right}"
            show(shown)
            if len(said) != len(right.list) or not all(
                    number.is_value(value, right.unit) for number, value in zip(said, right.list, strict=True)):
                yield shown
        except (Stale, OSError) as error:
            yield f"'{found[0]}': {error}"
    left = [digits.replace(" ", "") for digits in unclaimed.values()]
    yield from (f"{digits} is neither claimed nor given: {text[:60]}..." for digits in left if digits not in given)
    yield from (f"{digits} is given, but not in the text: {text[:60]}..." for digits in given if digits not in left)


def plain(page: str) -> str:
    """The text of a manual page, line by line: paragraphs between empty lines, comments like those of Markdown."""
    lines = []
    for line in page.split("\n"):
        if line.startswith('.\\"'):
            line = line[3:].removeprefix(" ")
        elif macro := re.match(r"\.(\w+) ?", line):
            words = line[macro.end():].replace('"', "") if re.fullmatch("[BIR]{1,2}", macro[1]) else ""
            line = words.replace(" ", "") if len(macro[1]) == 2 else words
        lines.append(re.sub(r"\\f.|\\&", "", line.replace(r"\(mcs", "us").replace(r"\-", "-")))
    return "\n".join(lines)


def check(page: str, show: Callable[[str], object]) -> Iterator[str]:
    """What is wrong in a document."""
    for comment in COMMENT.finditer(page):
        text = paragraph_before(page, comment.start())
        line = page.count("\n", 0, comment.start()) + 1
        yield from (f"{line}: {problem}" for problem in check_comment(comment[1], text, show))
    line = 1
    for paragraph in page.split("\n\n"):
        text = paragraph_before(paragraph, len(paragraph))
        if "**Verdict" in paragraph and numbers(text) and not COMMENT.search(paragraph):
            yield f"{line}: a verdict with numbers, but without <!-- figures"
        line += paragraph.count("\n") + 2


def main() -> int:
    """Check the documents that the command line names."""
    paths, status = sys.argv[1:], 0
    show: Callable[[str], object] = str
    if "--show" in paths:
        paths.remove("--show")
        show = print
    for path in paths:
        with open(path, encoding="utf-8") as file:
            page = file.read() if path.endswith(".md") else plain(file.read())
        for problem in check(page, show):
            print(f"{path}:{problem}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
