#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Each option of the commands is in the man pages, with the words of --help.

    man_options.py MAN TABLES            1, and what is wrong
    man_options.py --write MAN TABLES    write the entries anew

MAN is the directory of the man pages, TABLES the program sampleprof-tables.
A page marks an entry by comments; text that says more stands behind it:

    .\\" option COMMAND --NAME
    .TP
    ...
    .\\" end
"""
import collections
import os
import re
import subprocess
import sys
import textwrap

# Where a command is described, if not in the last.
PAGES = {"": "sampleprof.1", "run": "sampleprof.1", "ps": "sampleprof.1",
         "ls": "sampleprof.1",
         "ctl": "sampleprof.1", "serve": "sampleprof.1",
         "push": "sampleprof.1", "attach": "sampleprof.1",
         "detach": "sampleprof.1",
         "lab": "sampleprof-lab.1"}
OTHERS = "sampleprof-report.1"
ENTRY = re.compile(r'(\.\\" option (\S*) --(\S+)\n)(.*?)(\.\\" end\n)', re.S)

Option = collections.namedtuple("Option", "name letter value help")


def read_options(program):
    """{(command, name): Option}, in the order of the tables."""
    options = {}
    for line in subprocess.run([program, "options"], check=True, text=True,
                               capture_output=True).stdout.splitlines():
        if line[0] == " ":
            options[key] = options[key]._replace(
                help=options[key].help + [line[1:]])
        else:
            command, *fields = line.split("\t")
            key = command, fields[0]
            options[key] = Option(*fields, [])
    return options


def render_value(value):
    """What stands for a value is italic, a word to be typed bold."""
    return re.sub(r"[A-Za-z]+", lambda m: (
        "\\fI" if m[0].isupper() else "\\fB") + m[0] + "\\fR", value)


def render_text(lines):
    """Sentences; a line "word: ..." begins one of a list."""
    parts = []
    for line in lines:
        if not parts or re.match(r"\w+: ", line):
            parts.append(line)
        else:
            parts[-1] += " " + line
    text = []
    for part in parts:
        if re.match(r"[a-z]+[ ,;]", part):
            part = part[0].upper() + part[1:]
        part = re.sub(r"--[\w-]+", lambda m: "\\fB" + m[0].replace(
            "-", "\\-") + "\\fR", part.replace("\\", "\\e"))
        text.append("\n".join(textwrap.wrap(
            part + "." * (part[-1] != "."), 78, break_long_words=False,
            break_on_hyphens=False)))
    return "\n.br\n".join(text)


def render_option(option):
    names = "\\fB\\-\\-" + option.name.replace("-", "\\-") + "\\fR"
    if option.letter:
        names = f"\\fB\\-{option.letter}\\fR, {names}"
    if option.value:
        names += " " + render_value(option.value)
    return f".TP\n{names}\n{render_text(option.help)}\n"


def check_page(path, options, write):
    """What is wrong with a page, whose options are {(command, name): ...}."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    wrong, seen = [], set()

    def renew(match):
        begin, command, name, body, end = match.groups()
        option = options.get((command, name))
        if not option:
            wrong.append(f"{path}: {command} has no --{name}")
            return match[0]
        seen.add(option)
        if body != render_option(option):
            wrong.append(f"{path}: {command} --{name} is not as in --help")
        return begin + render_option(option) + end

    new = ENTRY.sub(renew, text)
    if write and new != text:
        wrong = [w for w in wrong if "has no" in w]
        with open(path, "w", encoding="utf-8") as file:
            file.write(new)
    return wrong + [f"{path}: {command} --{name} is missing"
                    for (command, name), option in options.items()
                    if option not in seen]


def main(arguments):
    write = arguments[0] == "--write"
    man, program = arguments[write:]
    pages = {}
    for key, option in read_options(program).items():
        pages.setdefault(PAGES.get(key[0], OTHERS), {})[key] = option._replace(
            help=tuple(option.help))
    wrong = [w for page, options in pages.items()
             for w in check_page(os.path.join(man, page), options, write)]
    for line in wrong:
        print(line)
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
