#!/usr/bin/python3
"""Writes the manual pages, and completions for bash, from what the programs, the sample configuration and the header
say of themselves.

  make_pages.py OUTPUT_FOLDER SOURCE_FOLDER VERSION PROGRAM...

PROGRAM: path of a program of SECTIONS, whose --help is read, and that of all its commands. deploy/coppiced.toml
becomes coppiced.toml(5), deploy/agent.toml agent.toml(5), client/library/coppice.h libcoppice(3). Pages are
compressed, as Debian has them.
Completions are the files PROGRAM.bash."""

import gzip
import itertools
import pathlib
import re
import subprocess
import sys
import textwrap

SECTIONS = {"coppiced": 8, "coppice-agent": 8, "coppice-switch": 8, "coppicectl": 1, "coppice-plan": 1,
            "coppice-search": 1, "coppice-search-mpich": 1}
SEE = ["coppiced(8)", "coppice-agent(8)", "coppice-switch(8)", "coppicectl(1)", "coppice-plan(1)",
       "coppice-search(1)", "coppiced.toml(5)", "agent.toml(5)", "libcoppice(3)"]
DAEMONS_STATUS = ["0 ended as told, 1 it could not start or go on, 2 wrong usage, also of the configuration file"]
STATUS = {"coppiced": DAEMONS_STATUS, "coppice-agent": DAEMONS_STATUS, "coppice-switch": DAEMONS_STATUS}
DAEMONS_SOCKET = ("/run/coppice/coppiced.sock", "where the daemon listens")
AGENTS_SOCKET = ("/run/coppice/agent.sock", "where a node's agent listens")
FILES = {"coppiced": [("/etc/coppice/coppiced.toml", "the configuration"), DAEMONS_SOCKET,
                      ("/var/lib/coppice/coppice.db", "the database")],
         "coppice-agent": [("/etc/coppice/agent.toml", "the configuration"), AGENTS_SOCKET,
                           ("/var/lib/coppice-agent", "what outlives the agent: the jobs that it holds")],
         "coppice-switch": [("/etc/default/coppice-switch", "what its service is started with")],
         "coppicectl": [DAEMONS_SOCKET, AGENTS_SOCKET]}
FILLED = 72  # columns of a terminal of 80 that man leaves to text
COLUMN = 30  # of --help, where what an option means begins, in its line or in the next


def escaped(text):
    """Text of a page: no letter of it is a request or an escape of troff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def last_column(line):
    """Where what stands behind a gap of blanks begins; a line without one: its first letter."""
    return re.match(r"\s*(?:.*\S {2,}(?=\S))?", line).end()


def folded(lines):
    """Lines that man does not fill, for a terminal: what goes on stands below the begin of the last column."""
    whole = []
    for line in lines:
        at = last_column(whole[-1]) if whole else 0
        goes_on = "  " in whole[-1].lstrip() and line[:at].isspace() and line[at:at + 1].strip() if whole else False
        whole[len(whole) - bool(goes_on):] = [whole[-1] + " " + line.strip() if goes_on else line]
    for line in whole:
        begin = min(last_column(line), FILLED // 2)
        if max(map(len, line.split()), default=0) > FILLED - begin:  # a model with all of its arguments
            line = line.replace(",", ",\0 ")
        parts = textwrap.wrap(line, FILLED, subsequent_indent=" " * begin, break_long_words=False,
                              break_on_hyphens=False) or [""]
        yield from (re.sub("\0 ?", "", part) for part in parts)


class Page:
    def __init__(self, name, section, version, what):
        self.name, self.section = name, section
        self.lines = [f'.TH {name.upper()} {section} "" "Coppice {version}" "Coppice"', ".ad l", ".nh", ".SH NAME",
                      escaped(f"{name} - {what}")]

    def heading(self, text, depth="SH"):
        self.lines += [f".{depth} {escaped(text)}"]

    def paragraph(self, text):
        self.lines += [".PP", escaped(text)]

    def item(self, tag, text):
        self.lines += [".TP", f"\\fB{escaped(tag)}\\fP", escaped(text)]

    def example(self, lines):
        self.lines += [".PP", ".nf", *[escaped(line) or "\\&" for line in folded(lines)], ".fi"]

    def prose(self, lines):
        """Paragraphs; lines that are set apart, by blanks before them or within, stay lines."""
        for is_apart, group in itertools.groupby(lines, lambda line: not line or "  " in line or line.startswith(" ")):
            group = list(group)
            if not is_apart:
                self.paragraph(" ".join(group))
            elif any(group):
                self.example(group)

    def write(self, folder):
        self.heading("SEE ALSO")
        self.lines += [escaped(", ".join(s for s in SEE if s != f"{self.name}({self.section})"))]
        text = "\n".join(self.lines) + "\n"
        (folder / f"{self.name}.{self.section}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


class Help:
    """What --help of a program or a command says: words, usage, options, commands, and words after them."""

    def __init__(self, command):
        text = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
        self.description, self.usage, self.footer = [], "", []
        self.options, self.commands, self.statuses, into = [], [], [], None
        for line in text.splitlines():
            if line.startswith("Usage: "):
                self.usage = line[len("Usage: "):]
            elif line == "Exit status:":
                into = self.statuses
            elif into is self.statuses and line.strip():
                is_one = line[2:3].isdigit()
                into.append(line.strip() if is_one else into.pop() + " " + line.strip())
            elif heading := re.fullmatch(r"(Options|Subcommands|Positionals)( \(.*\))?:", line):
                into = self.commands if heading.group(1) == "Subcommands" else self.options
                note = (heading.group(2) or "").lstrip()
            elif into is None:
                self.description.append(line)
            elif line.startswith(" " * COLUMN) and into:
                into[-1][1] = (into[-1][1] + " " + line.strip()).strip()
            elif line.startswith("  ") and line[2:3] != " " and not self.footer:
                is_one = line[COLUMN - 1:COLUMN] == " "
                tag, what = (line[:COLUMN], line[COLUMN:]) if is_one else (line, "")
                into.append([tag.strip(), f"{note} {what}".strip()])
            elif line.strip():
                self.footer.append(line)

    def words(self):
        return " ".join(line.strip() for line in self.description if line.strip())


def names_of(tag):
    """Of a command, its own first: "placement, place"."""
    return tag.replace(",", " ").split()


def variables_of(command, said):
    """Each variable of the environment that an option of a program or of its commands names, with the options."""
    found = {}
    for tag, what in said.options:
        for name in re.findall(r"\$(COPPICE_\w+)", what):
            found.setdefault(name, []).append(tag.split()[0])
    for tag, _ in said.commands:
        below = [*command, names_of(tag)[0]]
        for name, options in variables_of(below, Help(below)).items():
            found.setdefault(name, []).extend(options)
    return found


def describe(page, command, said, depth):
    """Options and commands of a program, and those of each command below it."""
    for tag, what in said.options:
        if not tag.startswith("-h,"):
            page.item(tag, what)
    if said.footer:
        page.example(said.footer)
    for tag, _ in said.commands:
        name = names_of(tag)[0]
        below = Help([*command, name])
        page.heading(" ".join([pathlib.Path(command[0]).name, *command[1:], name]), depth)
        page.paragraph(below.words())
        page.paragraph(below.usage)
        describe(page, [*command, name], below, depth)


def program_page(path, version):
    name = pathlib.Path(path).name
    said = Help([path])
    page = Page(name, SECTIONS[name], version, said.words().rstrip("."))
    page.heading("SYNOPSIS")
    page.paragraph(said.usage)
    page.heading("OPTIONS")
    describe(page, [path], said, "SS")
    page.heading("EXIT STATUS")
    for line in STATUS.get(name) or said.statuses:
        page.paragraph(line)
    if variables := variables_of([path], said):
        page.heading("ENVIRONMENT")
        for variable, options in sorted(variables.items()):
            page.item(variable, "see " + ", ".join(sorted(set(options))))
    if name in FILES:
        page.heading("FILES")
        for file, what in FILES[name]:
            page.item(file, what)
    return page


def configuration_page(name, program, text, version):
    """Each key with the comment above it, by tables; a line of comment before the first key is the start."""
    page = Page(name, 5, version, "configuration of " + program)
    comment, is_described = [], False
    for line in text.splitlines():
        key = re.match(r"#?(\w[\w-]*) = (.*)$", line)
        table = re.match(r"#?(\[\[?[\w.]+\]\]?)", line)
        if line.startswith("# ") or line == "#":
            comment.append(line[2:])
        elif key or table:
            if table:
                page.heading(table.group(1))
                page.prose(comment)
            else:
                page.item(f"{key.group(1)} = {key.group(2)}", "")
                page.prose(comment)
            comment, is_described = [], True
        elif not line.strip() and comment and not is_described:
            page.heading("DESCRIPTION")
            page.paragraph(" ".join(comment))
            page.heading("KEYS")
            comment, is_described = [], True
    return page


def library_page(header, version):
    """Each function of the header, with the comment before it."""
    page = Page("libcoppice", 3, version, "Coppice for programs in C and C++")
    page.heading("SYNOPSIS")
    page.example(["#include <coppice/coppice.h>", "cc ... -lcoppice"])
    comment, is_first = "", True
    for block in re.findall(r"^/\*.*?\*/|^COPPICE_API[^;]*;", header, re.S | re.M):
        if block.startswith("/*"):
            paragraphs = re.split(r"\n \*\n", block[2:-2])
            comment = [re.sub(r"\s*\n \*\s*", " ", part).strip("* \n") for part in paragraphs]
            if is_first:
                page.heading("DESCRIPTION")
                for part in comment:
                    page.paragraph(part)
                page.heading("FUNCTIONS")
                comment, is_first = [], False
            elif (rule := re.match(r"-+ (.*?) -+$", comment[0])):
                page.heading(rule.group(1), "SS")
                comment = []
        else:
            page.item(re.sub(r"\s+", " ", block.replace("COPPICE_API ", "")), " ".join(comment))
            comment = []
    return page


class Words:
    """What may follow in a command line, by the words of the commands that stand there."""

    def __init__(self, path):
        self.below = {}   # commands and options
        self.above = {}   # options that stand behind commands below as well
        self.values = {}  # by words and option: the words that are its values; "": any text
        name = pathlib.Path(path).name
        self.read([path], name, Help([path]))

    def read(self, command, at, said):
        options = []
        for tag, _ in said.options:
            named = re.findall(r"-{1,2}[a-z][\w-]*", tag.split()[0])
            options += [word for word in named if word.startswith("--")]
            kind = re.match(r"\S+ (?:TEXT|UINT|INT|FLOAT)(?::\{([\w,-]+)\})?", tag)
            if named and kind:
                self.values.update({f"{at} {word}": (kind.group(1) or "").replace(",", " ") for word in named})
        self.above[at] = [word for word in options if word not in ("--help", "--version")]
        self.below[at] = [name for tag, _ in said.commands for name in names_of(tag)] + options
        for tag, what in said.commands:
            for name in names_of(tag):
                self.read([*command, name], f"{at} {name}", Help([*command, name]))
            # As `coppice-plan tree --bytes 8` is `coppice-plan tree advise --bytes 8`.
            if meant := re.search(r"without a command: (\w+)", what):
                self.stands_for(f"{at} {names_of(tag)[0]}", f"{at} {names_of(tag)[0]} {meant.group(1)}")
            if meant := re.search(r"(\w+) is (\w+ \w+)$", what):
                self.below[at].append(meant.group(1))
                self.stands_for(f"{at} {meant.group(1)}", f"{at} {meant.group(2)}")

    def stands_for(self, alone, full):
        self.below[alone] = self.below.get(alone, []) + self.below[full]
        self.values.update({alone + key[len(full):]: words for key, words in self.values.items()
                            if key.startswith(full + " -")})


def completion(path):
    name = pathlib.Path(path).name
    function = "_" + name.replace("-", "_")
    words = Words(path)

    def table(variable, rows):
        return f"  local -A {variable}=(" + " ".join(f'["{key}"]="{value}"' for key, value in rows) + ")"
    return "\n".join([
        f"# {name}: the commands, options and values that may follow; file names where there are none.",
        f"{function}() {{",
        f"  local word words at command={name} previous=${{COMP_WORDS[COMP_CWORD-1]}}",
        table("below", ((at, " ".join(dict.fromkeys(all_words))) for at, all_words in words.below.items())),
        table("above", ((at, " ".join(options)) for at, options in words.above.items() if options)),
        table("values", words.values.items()),
        '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '    [ -z "${below["$command $word"]+is}" ] || command="$command $word"',
        "  done",
        "  words=${below[$command]}",
        "  for ((at = ${#command}; at > 0; --at)); do  # the command, and those above it",
        '    [ "$at" = ${#command} ] || [ "${command:at:1}" = " " ] || continue',
        '    if [ -n "${values["${command:0:at} $previous"]+is}" ]; then',
        '      words=${values["${command:0:at} $previous"]}',
        "      break",
        "    fi",
        '    words+=" ${above["${command:0:at}"]-}"',
        "  done",
        '  mapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}" | sort -u)', "}",
        f"complete -o default -F {function} {name}", ""])


def main():
    folder, source, version = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    folder.mkdir(parents=True, exist_ok=True)
    pages = [program_page(path, version) for path in sys.argv[4:]]
    for name, program in (("coppiced.toml", "coppiced"), ("agent.toml", "coppice-agent")):
        pages.append(configuration_page(name, program, (source / "deploy" / name).read_text(), version))
    pages.append(library_page((source / "client/library/coppice.h").read_text(), version))
    for page in pages:
        page.write(folder)
    for path in sys.argv[4:]:
        (folder / (pathlib.Path(path).name + ".bash")).write_text(completion(path))


if __name__ == "__main__":
    main()
