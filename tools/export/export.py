#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Write the modules as a patch series that adds them to the kernel's source tree.

    export.py KERNEL OUT

KERNEL is a directory with the source of Linux 6.12 or later; it is only read. OUT receives mails of
`git format-patch` with a cover letter, for `git am`; they replace those of an earlier export. If git
has an identity (user.name and user.email), the patches are signed off by it.
series.toml lists the patches: their texts, their files, and the lines that they insert into files
of the kernel.

Each source below include/, kunit/, net/, drivers/, selftests/net/ and selftests/tc-testing/ is
exported, unless left_out in series.toml has a reason. Each exported file belongs to one patch, and
a Makefile of the series compiles each exported source of a module; otherwise nothing is written.

The files differ from this project's in these ways:

- compat-include/ is resolved for KERNEL. What KERNEL has and lacks is known (features.mk), so no
  #ifdef is left; a wrapper header without definitions of its own is replaced by the kernel's
  header, macros without arguments by their values. The rest is include/net/timely_compat.h.
- The headers of the engines are in include/net/timely/, where all directories of the kernel find
  them without options of the compiler.
- A module's main file has another name than the module, as the kernel's build system requires
  within one directory: tcp_timely.c becomes tcp_timely_core.c.
- Modules have no version of their own.
- Where KERNEL has kmalloc_obj() and its kin, objects are allocated with them.
"""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib
import typing

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
COMPAT = "include/net/timely_compat.h"
COVER = "0000-cover-letter.patch"
# Main files that have the name of their module.
RENAMED = ("tcp_timely", "sch_timely", "sch_trim", "timely_acker")
MODULES = ("timely", "tcp_timely", "sch_timely", "sch_trim", "timely_acker", "timely_kunit")
SELFTESTS = "tools/testing/selftests"
# Tests that include the source of a module: they must not be in one image with the module.
WHITE_BOX = {"nic_kunit": "m", "path_kunit": "m", "qdisc_kunit": "$(if $(filter y,$(CONFIG_NET_SCH_TIMELY)),m,y)",
             "trim_qdisc_kunit": "$(if $(filter y,$(CONFIG_NET_SCH_TRIM)),m,y)"}


def die(message: str) -> typing.NoReturn:
    sys.exit(f"export: {message}")


def read(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8")


# ---- compat-include/, resolved for one kernel ----

def features(kernel: pathlib.Path) -> dict[str, bool]:
    """The macros of features.mk, and whether this kernel defines them."""
    found = {}
    call = re.compile(r"call have,(\w+),([^,]+),(.*)\)$", re.M)
    for macro, header, pattern in call.findall(read(TOP / "compat-include/features.mk")):
        path = kernel / "include" / header
        found[macro] = path.exists() and bool(re.search(pattern, read(path), re.M))
    netlink = read(kernel / "include/linux/netlink.h")
    found["NL_SET_ERR_MSG_FMT_MOD"] = "NL_SET_ERR_MSG_FMT_MOD" in netlink
    return found


def without_conditions(text: str, have: dict[str, bool]) -> str:
    """Evaluate #ifdef, #ifndef, #else and #endif of known macros; leave all others."""
    kept = []
    stack: list[bool | None] = []       # None: the condition stays
    for line in text.splitlines():
        word = re.match(r"#(ifdef|ifndef|if|else|endif)\b\s*(\w*)", line)
        if word and word[1].startswith("if"):
            known = word[1] != "if" and word[2] in have
            stack.append(have[word[2]] == (word[1] == "ifdef") if known else None)
        elif word and word[1] == "else" and stack[-1] is not None:
            stack[-1] = not stack[-1]
        elif word and word[1] == "endif":
            known = stack.pop() is not None
        else:
            known = False
        gone = word and (known or word[1] == "else" and stack[-1] is not None)
        if not gone and False not in stack:
            kept.append(line)
    return "\n".join(kept) + "\n"


def without_history(comment: re.Match[str]) -> str:
    """Remove from a comment the sentences that are about other kernel versions."""
    paragraphs = []
    for paragraph in re.split(r"\n \*\n", comment[1]):
        text = " ".join(re.sub(r"\n? \* ?", " ", paragraph).split())
        sentences = re.split(r"(?<=\.) ", text)
        old = re.compile(r"\b(since|before)( Linux|,)|Kernels with", re.I)
        now = [sentence for sentence in sentences if not old.search(sentence)]
        if now and now[0] == sentences[0]:
            paragraphs.append(" ".join(now))
    if not paragraphs:
        return ""
    if len(paragraphs) == 1 and len(paragraphs[0]) < 92:
        return f"/* {paragraphs[0]} */\n"
    lines = "\n *\n".join(textwrap.fill(p, 98, initial_indent=" * ", subsequent_indent=" * ")
                         for p in paragraphs)
    return f"/*{lines[2:]}\n */\n"


def typed_allocations(text: str) -> str:
    """Allocate objects by their types, by kmalloc_obj() and its kin, instead of by their sizes."""
    def typed(call: re.Match[str]) -> str:
        function, count, thing, flags = call.groups()
        flags = " ".join(flags.split())
        if count:
            return f"kzalloc_objs({thing}, {count}, {flags})"
        return f"{function}_obj({thing}, {flags})"
    flags = r"\s*((?:[^();]|\([^()]*\))+)\)"
    text = re.sub(rf"\b(kv?[mz]alloc)\(()sizeof\(([^()]+)\),{flags}", typed, text)
    return re.sub(rf"\b(kcalloc)\(([^,;]+), sizeof\(([^()]+)\),{flags}", typed, text)


class Compat:
    """The wrapper headers of compat-include/ for one kernel."""

    def __init__(self, kernel: pathlib.Path) -> None:
        have = features(kernel)
        slab = read(kernel / "include/linux/slab.h")
        self.typed_allocations = "define kmalloc_obj(" in slab
        included: set[str] = set()
        self.replaced: dict[str, str] = {}  # a wrapper header, and the lines that take its place
        self.values: dict[str, str] = {}    # macros without arguments
        blocks: list[str] = []
        for path in sorted((TOP / "compat-include").glob("**/*.h")):
            if path.name == "hwnic_compat.h":   # of the test NIC, which is not exported
                continue
            name = str(path.relative_to(TOP / "compat-include"))
            text = without_conditions(read(path), have).replace("#include_next", "#include")
            guarded = text.partition("#define _TIMELY_COMPAT")[2].partition("\n")[2]
            text = guarded.rpartition("#endif")[0]
            includes = re.findall(r"^#include .*\n", text, re.M)
            body = self.body(re.sub(r"^#include .*\n", "", text, flags=re.M))
            if body:
                blocks += body
                included.update(includes)
            own = body and f"#include <{name}>\n" not in includes
            self.replaced[name] = "" if own else "".join(includes)
        text = "\n\n".join(blocks)
        name = r"^(?:#define |static inline [\w\s*]+?\b)(\w+)\("
        self.names = set(re.findall(name, text, re.M))
        guard = "_NET_TIMELY_COMPAT_H"
        self.header = (
            "/* SPDX-License-Identifier: GPL-2.0 */\n/*\n"
            " * Functions of the kernel in the form in which the modules of TIMELY call them.\n"
            " */\n"
            f"#ifndef {guard}\n#define {guard}\n\n{''.join(sorted(included))}\n{text}\n\n"
            f"#endif /* {guard} */\n")

    def body(self, text: str) -> list[str]:
        """The parts of a wrapper between empty lines, without macros that have no arguments."""
        blocks = []
        for block in re.split(r"\n\n+", text.strip()):
            value = re.search(r"^#define (\w+)(?:[ \t]+(.*))?\Z", block, re.M)
            if value:
                self.values[value[1]] = value[2] or ""
            else:
                blocks.append(re.sub(r"^/\* (?!\*)(.*?)\s*\*/\n", without_history, block,
                                     flags=re.S | re.M))
        return [block for block in blocks if block.strip()]

    def resolve(self, text: str) -> str:
        """Replace the wrappers in a source file."""
        for macro, value in self.values.items():
            text = re.sub(rf"\b{macro}\b ?", f"{value} " if value else "", text)
        text = typed_allocations(text) if self.typed_allocations else text
        used = re.search(rf"\b({'|'.join(self.names)})\(|^#include \".*\.c\"", text, re.M)
        for name, lines in self.replaced.items():
            text = text.replace(f"#include <{name}>\n", lines)
        if used:
            end = [m.end() for m in re.finditer(r"^#include <.*\n", text, re.M)][-1]
            text = f"{text[:end]}#include <net/timely_compat.h>\n{text[end:]}"
        return text


def paragraphs_within(text: str, columns: int, prefix: str = "") -> str:
    """Wrap paragraphs and the items of lists."""
    items = re.split(r"\n(?=\n|- )", text.strip())
    text = ""
    for item in items:
        indent = prefix + ("  " if item.startswith("- ") else "")
        text += ("\n" if item.startswith("\n") else "") + textwrap.fill(
            " ".join(item.split()), columns, initial_indent=prefix, subsequent_indent=indent,
            break_on_hyphens=False) + "\n"
    return text


def short_comments(text: str) -> str:
    """Wrap paragraphs of comments that have become wider than 100 columns, by a longer name."""
    def wrap(run: re.Match[str]) -> str:
        if all(len(line) <= 100 for line in run[0].splitlines()):
            return run[0]
        return paragraphs_within(re.sub(r"^ \* ", "", run[0], flags=re.M), 100, " * ")
    return re.sub(r"^(?: \* \S.*\n)+", wrap, text, flags=re.M)


# ---- the files ----

class Files:
    """The exported files, by their paths in the kernel's tree."""

    def __init__(self, compat: Compat, left_out: dict[str, str]) -> None:
        self.compat = compat
        self.text: dict[str, str] = {COMPAT: compat.header}
        self.engine_headers = {path.name for path in (TOP / "net/timely/engine").glob("*.h")}
        unused = set(left_out)
        for name in project_files():
            reasons = {pattern for pattern in left_out if fnmatch.fnmatchcase(name, pattern)}
            unused -= reasons
            if not reasons:
                target = self.target(name)
                text = read(TOP / name)
                self.text[target] = text if target.startswith("tools/") else self.source(text)
        if unused:
            die(f"series.toml: left_out has no file {' '.join(sorted(unused))}")
        self.selftests()

    def selftests(self) -> None:
        """Adapt the functional tests to an installed kselftest, and list them in a Makefile."""
        place = f"{SELFTESTS}/net/timely/"
        lists: dict[str, list[str]] = {"programs": [], "libraries": [], "built": []}
        for name in [name for name in self.text if name.startswith(place)]:
            text = self.text[name].replace("../../../include/uapi/linux/timely.h", "timely.h")
            self.text[name] = text
            name = name.removeprefix(place)
            if re.search("^run_cases ", text, re.M):
                lists["programs"].append(name)
            elif name.endswith((".sh", ".py")):
                lists["libraries"].append(name)
            elif name.endswith(".c"):
                lists["built"].append(name.removesuffix(".c"))
        makefile = read(HERE / "Makefile.selftests")
        for kind, names in lists.items():
            makefile = makefile.replace(f"{{{kind}}}", " \\\n\t".join(names))
        self.text[place + "Makefile"] = makefile
        self.text["Documentation/networking/timely.rst"] = read(HERE / "timely.rst")

    @staticmethod
    def target(name: str) -> str:
        """The path in the kernel's tree of a file of this project."""
        path = pathlib.PurePath(name)
        if path.match("selftests/tc-testing/*.json"):
            return f"{SELFTESTS}/tc-testing/tc-tests/qdiscs/{path.name}"
        # The engine of a module that does not use module timely lies beside the module.
        if name == "net/timely/engine/trim.c":
            return "net/sched/sch_trim_engine.c"
        if path.parts[0] == "selftests":
            return f"tools/testing/{name}"
        if path.parent.name == "kunit":
            return f"net/timely/tests/{path.name}"
        if path.parent.name == "engine" and path.suffix == ".h":
            return f"include/net/timely/{path.name}"
        if path.suffix == ".c" and path.stem in RENAMED:
            return str(path.with_name(f"{path.stem}_core.c"))
        return name

    def source(self, text: str) -> str:
        """A C file as it is in the kernel's tree."""
        text = self.compat.resolve(text)
        text = re.sub(rf"\b({'|'.join(RENAMED)})\.c\b", r"\1_core.c", text)
        text = text.replace("<timely/engine/", "<net/timely/")
        text = text.replace('"../net/timely/', '"../').replace('"../net/sched/', '"../../sched/')
        text = text.replace("kunit/reference.py", "reference.py of TIMELY for Linux")
        engine = "|".join(map(re.escape, self.engine_headers))
        text = re.sub(rf'^#include "({engine})"$', r"#include <net/timely/\1>", text, flags=re.M)
        text = re.sub(r"^#include <uapi/linux/timely_version.h>\n|^MODULE_VERSION.*\n", "", text,
                      flags=re.M)
        text = text.replace("compat-include/timely_probe.h", "include/trace/events/tcp.h")
        text = re.sub(r"(Documentation/\w+\.md)", r"\1 of TIMELY for Linux", text)
        return short_comments(re.sub(r"\n\n\n+", "\n\n", text))


def project_files() -> list[str]:
    """The files that are exported or left out: sources, tests and their data."""
    suffixes = {".c", ".h", ".S", ".sh", ".py", ".json"}
    tops = ("include", "kunit", "net", "drivers", "selftests/net", "selftests/tc-testing")
    found = [path.relative_to(TOP) for top in tops for path in (TOP / top).rglob("*")]
    return sorted(str(path) for path in found
                  if path.suffix in suffixes and not path.match("*.mod.c"))


def objects(module: str, left_out: dict[str, str]) -> list[str]:
    """The object files of a module that Kbuild lists, without those whose sources are left out."""
    kbuild = read(TOP / "Kbuild").replace("\\\n", " ")
    lines = re.findall(rf"^{module}-y :?\+?= (.*)", kbuild, re.M)
    names = []
    for line in lines:
        prefixed = re.match(r"\$\(addprefix (\S+),(.*)\)", line)
        prefix, words = prefixed.groups() if prefixed else ("", line)
        names += [prefix + word.removesuffix(".o") for word in words.split()]
    if not names:
        die(f"Kbuild has no object files of {module}")
    return [name for name in names
            if not any(fnmatch.fnmatchcase(f"{name}.c", pattern) for pattern in left_out)]


# ---- the series ----

def figure(quoted: re.Match[str]) -> str:
    """The median in a table of a file in results/, for {FILE#HEADING|ROW|COLUMN}."""
    name, row, column = quoted.groups()
    name, _, heading = name.partition("#")
    text = read(TOP / name)
    columns: list[str] = []
    for line in text[text.index(f"\n## {heading}") if heading else 0:].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if column in cells:
            columns = cells
        elif cells[0] == row and columns:
            return cells[columns.index(column)].split(" (")[0]
    return die(f"{name} has no row '{row}' with a column '{column}'")


class Series:
    """A repository with the patched files of the kernel; each patch of series.toml is a commit."""

    def __init__(self, kernel: pathlib.Path, repo: pathlib.Path) -> None:
        self.kernel = kernel
        self.repo = repo
        self.config = tomllib.loads(read(HERE / "series.toml"))
        self.patches: list[dict[str, typing.Any]] = self.config["patch"]
        self.files = Files(Compat(kernel), self.config["left_out"]).text
        # Makefiles, and the modules whose objects they list
        self.lists: set[tuple[str, str]] = set()
        self.check()

    def check(self) -> None:
        """Each file belongs to one patch, and each source of a module is compiled."""
        left = set(self.files)
        for patch in self.patches:
            for pattern in patch["files"]:
                names = set(fnmatch.filter(left, pattern))
                if not names:
                    die(f"series.toml: no file '{pattern}'")
                left -= names
        if left:
            die(f"no patch has {' '.join(sorted(left))}: add them to series.toml, to a patch or,"
                " with a reason, to left_out")
        sources = {name for name in self.files if name.startswith("net/") and name.endswith(".c")}
        compiled = {Files.target(f"{name}.c") for module in MODULES
                    for name in objects(module, self.config["left_out"])}
        if sources != compiled:
            die("not both in the series and in a list of objects in Kbuild: "
                + " ".join(sorted(sources ^ compiled)))

    def git(self, *arguments: str, message: str = "") -> str:
        """Run git in the repository, with the user's identity if git is configured with one."""
        identity = [] if self.identity() else [
            "-c", "user.name=TIMELY for Linux", "-c", "user.email=timely@localhost"]
        identity += ["-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *identity, *arguments], cwd=self.repo, input=message,
                              check=True, stdout=subprocess.PIPE, text=True).stdout

    def identity(self) -> str:
        return subprocess.run(["git", "config", "user.email"], cwd=self.repo, check=False,
                              stdout=subprocess.PIPE, text=True).stdout.strip()

    def commit(self, message: str) -> None:
        self.git("add", "--all", "--force")
        sign = ["--signoff"] if self.identity() else []
        self.git("commit", "--quiet", "--allow-empty", *sign, "--file=-", message=message)

    def text(self, name: str) -> str:
        path = self.repo / name
        return read(path) if path.exists() else ""

    def write(self, name: str, text: str) -> None:
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)

    def edit(self, file: str, text: str, at: str = "", where: str = "after") -> None:
        """Insert lines before or after the first line that matches `at`, or replace it; without
        `at` append them."""
        old = self.text(file)
        line = re.search(rf"^(?:{at}).*\n", old, re.M)
        if at and not line:
            die(f"{self.kernel / file} has no line '{at}': adapt tools/export/series.toml")
        start, end = line.span() if at and line else (len(old), len(old))
        start, end = {"before": (start, start), "after": (end, end), "instead": (start, end)}[where]
        self.lists |= {(file, module) for module in re.findall(r"\{objects (\w+)\}", text)}
        text = re.sub(r"\{objects (\w+)\}\n", lambda m: self.object_lines(m[1]), text)
        if not self.identity():
            text = re.sub(r"^.*\{author\}\n", "", text, flags=re.M)
        text = text.replace("{author}", self.git("log", "-1", "--format=%an <%ae>").strip())
        self.write(file, old[:start] + text + old[end:])

    def object_lines(self, module: str) -> str:
        """The lines of a Makefile with those objects of a module whose sources are written."""
        lines = ""
        for name in objects(module, self.config["left_out"]):
            source = pathlib.PurePath(Files.target(f"{name}.c"))
            if (self.repo / source).exists():
                when = WHITE_BOX.get(source.stem, "y")
                path = re.sub(r"^net/(timely/tests|\w+)/", "", str(source.with_suffix(".o")))
                lines += f"{module}-{when} += {path}\n"
        return lines

    def body(self, text: str) -> str:
        """A text with figures and the numbers of patches, in lines of at most 75 columns."""
        numbers = {patch["name"]: str(i) for i, patch in enumerate(self.patches, 1)}
        text = re.sub(r"\{(results/[^|}]+)\|([^|}]+)\|([^|}]+)\}", figure, text)
        return paragraphs_within(re.sub(r"\{patch (\w+)\}", lambda m: numbers[m[1]], text), 75)

    def apply(self, patch: dict[str, typing.Any]) -> None:
        """Write and commit the files of one patch."""
        for pattern in patch["files"]:
            for name in fnmatch.filter(self.files, pattern):
                self.write(name, self.files.pop(name))
        for file, module in self.lists:
            old = re.search(rf"(?:^{module}-.* \+= .*\n)+", self.text(file), re.M)
            self.write(file, self.text(file).replace(old[0], self.object_lines(module)))
        for edit in patch.get("edit", []):
            self.edit(**edit)
        self.commit(f"{patch['subject']}\n\n{self.body(patch['body'])}")

    def make(self, out: pathlib.Path) -> None:
        """Commit all patches, and write the mails."""
        self.git("init", "--quiet")
        if not self.identity():
            print("export: no git identity: patches have no Signed-off-by and MAINTAINERS no address",
                  file=sys.stderr)
        for name in {edit["file"] for patch in self.patches for edit in patch.get("edit", [])}:
            if (self.kernel / name).exists():
                self.write(name, read(self.kernel / name))
        self.commit("the kernel's files")
        for patch in self.patches:
            self.apply(patch)
        forget_series(out, self.config["cover"]["subject"])
        self.git("format-patch", "--quiet", "--cover-letter", "--subject-prefix=PATCH net-next",
                 "-M", f"--output-directory={out}", ":/the kernel's files")
        text = read(out / COVER)
        text = text.replace("*** SUBJECT HERE ***", self.config["cover"]["subject"])
        text = text.replace("*** BLURB HERE ***", self.body(self.config["cover"]["body"]).strip())
        (out / COVER).write_text(text, encoding="utf-8")


def forget_series(out: pathlib.Path, subject: str) -> None:
    """Delete the mails of an earlier export; refuse a directory with other patches."""
    old = list(out.glob("*.patch"))
    if old and not ((out / COVER).exists() and subject in read(out / COVER)):
        die(f"{out} has other patches: name another directory, OUT=DIR")
    for mail in old:
        mail.unlink()


def check_kernel(kernel: pathlib.Path) -> None:
    """The directory must have the source of a kernel that the series is made for."""
    for name in ("Makefile", "net/Kconfig", "include/net/tcp.h", "scripts/checkpatch.pl"):
        if not (kernel / name).exists():
            die(f"{kernel} is not the source of a kernel: it has no {name}")
    makefile = read(kernel / "Makefile")
    version = [int(n) for n in re.findall(r"^(?:VERSION|PATCHLEVEL) = (\d+)$", makefile, re.M)]
    if version < [6, 12]:
        die(f"{kernel} is the source of Linux {'.'.join(map(str, version))}: use 6.12 or later")
    if (kernel / "net/timely").exists():
        die(f"{kernel} has the directory net/timely already: use a source without these patches")


def main() -> None:
    if len(sys.argv) != 3:
        die("usage: export.py KERNEL OUT")
    kernel, out = (pathlib.Path(path).resolve() for path in sys.argv[1:])
    check_kernel(kernel)
    # A hook of git sets these variables for its own repository.
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        os.environ.pop(name, None)
    try:
        with tempfile.TemporaryDirectory() as repo:
            Series(kernel, pathlib.Path(repo)).make(out)
    except subprocess.CalledProcessError as error:
        die(f"failed: {' '.join(error.cmd)}")
    print(out)


if __name__ == "__main__":
    main()
