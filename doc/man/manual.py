#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the manual pages, so that no text stands twice: of functions from the comments of the headers, of programs from their
--help, of settings and counters from the library's tables (lists.c), of the rest from Markdown.

    manual.py names HEADER...                          the functions, a line each
    manual.py functions DIRECTORY VERSION SECTION EXAMPLES HEADER...
                                                       section 3, 3portals4, 3mx or 3gasnet: a page for each, into the directory; EXAMPLES is C
                                                       that shows them
    manual.py program PAGE VERSION SUMMARY PROGRAM [COMMAND...]
                                                       section 1: of what PROGRAM --help and PROGRAM COMMAND --help say
    manual.py settings PAGE VERSION LISTS              section 7: of what the program LISTS says
    manual.py markdown PAGE VERSION SUMMARY FILE       section 7: of a file such as doc/wire.md
    manual.py overview PAGE VERSION SUMMARY FILE OTHERS...
                                                       the same, and a list of the pages OTHERS
"""
import os
import re
import subprocess
import sys
import textwrap

MANUAL = "Postern manual"
DATE = "2026-11-21"  # of the release; mandoc(1) wants one
NOTHING = "\\&"
COLUMNS = 73  # of text that is not filled: man(1) indents it by 7 on a terminal of 80
SEE = {"1": "postern(7), postern\\-settings(7)", "3": "postern(7), postern\\-settings(7)",
       "3portals4": "portals4(7), postern\\-settings(7)", "3mx": "mx(7), postern\\-settings(7)", "3gasnet": "gasnet(7)", "7": "postern(7)"}
SUCCESS = ("PTL_OK", "The call succeeded.")
CLOSED = "The library is not initialised: PtlInit was not called, PtlFini was called, or fork() made this process."
# Of each header of Portals: what its functions return while the library is closed, and the book whose sections its numbers are.
PORTALS = {"portals.h": ("PTL_NOINIT", "The Portals 3.2 Message Passing Interface"), "portals4.h": ("PTL_NO_INIT", None)}
MX = ("myriexpress.h", "mx_extensions.h", "mx_io.h")
GASNET = ("gasnet.h", "gasnet_coll.h", "gasnet_vis.h")
AM = re.compile(r"gasnet_AM(?:Request|Reply)(?:Short|Medium|Long|LongAsync)(\d*)$")  # functions with M arguments have the comment of one
ARGUMENTS = 16
MX_ALWAYS = ("mx__init_api", "mx_set_error_handler", "mx_strerror", "mx_strstatus")
# Which functions of MX return a code that the comment of their group tells of: those whose declarations have this.
MX_GROUP = {"MX_BAD_REQUEST": r"mx_(test|wait)\(", "MX_BAD_MATCH_MASK": "match_mask"}
ALWAYS = ("PtlInit",)  # may be called while it is closed
NO_CODES = ("PtlHandleIsEqual", "PtlEvToStr")  # return a number that is no code


def roff(text):
    """Text in which nothing is a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def flow(text):
    """The same as filled text."""
    return roff(" ".join(text.split()))


def head(title, section, version, name, summary):
    return (f".TH {roff(title)} {section} {DATE} \"Postern {version}\" \"{MANUAL}\"\n"
            f".SH NAME\n{roff(name)} \\- {flow(summary)}\n")


def literal(text):
    return f".nf\n{roff(text)}\n.fi\n"


def wrapped(text, more):
    """A line of C code in lines of COLUMNS at most, the later ones with the indentation more: broken behind commas and operators."""
    if len(text) <= COLUMNS:
        return [text]
    lines = [text[:len(text) - len(text.lstrip())]]
    for piece in re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^"])+?(?:,|;|\|\||&&| \|| =)(?= )|(?:"(?:[^"\\]|\\.)*"|[^"])+?$', text.strip()):
        piece = piece.strip()
        if not lines[-1].strip():
            lines[-1] += piece
        elif len(lines[-1]) + 1 + len(piece) <= COLUMNS:
            lines[-1] += " " + piece
        else:
            lines.append(more + piece)
        if len(lines[-1]) > COLUMNS and "(" in lines[-1]:
            first, _, rest = lines[-1].partition("(")
            lines[-1:] = [first + "(", more + rest]
    return lines


def comment_wrapped(comment, lead):
    """A comment in such lines, behind lead. Its items, names with text behind them, stay apart."""
    items, indent = [], " " * len(lead)
    for line in comment_text(re.sub(r"\n\s*\*(?!/)", "\n *", comment)):
        item = re.match(r"(?:/\* )? *(\w+ {2,})(\S.*)", line)
        if item or not items:
            items.append(["  " + item.group(1), item.group(2)] if item else ["", line.removeprefix("/*")])
        else:
            items[-1][1] += " " + line
    lines = []
    for name, text in items:
        lines += textwrap.wrap(" ".join(text.split()), COLUMNS - len(lead) - 6, initial_indent=name, subsequent_indent=" " * len(name))
    lines = [f"{lead if n == 0 else indent}{'/*' if n == 0 else ' *'} {line}" for n, line in enumerate(lines)]
    return lines[:-1] + [lines[-1] + " */"]


def source(text):
    """C code for a terminal of 80 columns. A comment behind long code goes before it."""
    result, lines = [], text.replace("\t", "    ").split("\n")
    while lines:
        group = [lines.pop(0)]
        code, mark, comment = group[0].partition("/*")
        while mark and lines and "*/" not in comment:
            group.append(lines.pop(0))
            comment += "\n" + group[-1]
        while not mark and lines and "".join(group).count("(") > "".join(group).count(")"):
            group.append(lines.pop(0))
        indent = group[0][:len(group[0]) - len(group[0].lstrip())]
        if max(map(len, group)) <= COLUMNS or comment.rstrip()[-2:] not in ("*/", ""):
            result += group
        elif not mark:
            result += wrapped(indent + " ".join(line.strip() for line in group).replace("( ", "("), indent + " " * 4)
        elif len(code) + 6 + max(20, *map(len, comment.split())) <= COLUMNS:
            result += comment_wrapped("/*" + comment, code)
        else:
            result += comment_wrapped("/*" + comment, indent) + wrapped(code.rstrip(), indent + " " * 4)
    return "\n".join(result)


def tagged(tag, text):
    return f".TP\n.B {flow(tag)}\n{flow(text) or NOTHING}\n" if tag else f".PP\n{flow(text)}\n"


def see(section, pages=()):
    names = ", ".join([roff(page) for page in pages] + [SEE[section]])
    return f".SH SEE ALSO\n{names}\n"


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# --- headers


class Function:
    def __init__(self, comment, group, number, header):
        self.names, self.declarations, self.comment = [], [], comment
        self.group, self.number, self.header = group, number, header
        self.like = None  # the function before it, if it is "the same"

    def codes_of_all(self):
        """Codes that an interface's functions have in common."""
        if self.header in GASNET:
            told = [code for code, _ in parts(self.comment)[5]]
            return [("GASNET_OK", "The call succeeded.")] if told and "GASNET_OK" not in told else []
        if self.header in MX and self.declarations[0].startswith("mx_return_t "):
            codes = [("MX_SUCCESS", "The call succeeded.")]
            if self.names[0] not in MX_ALWAYS:
                codes.append(("MX_NOT_INITIALIZED", "The library is not initialised: mx_init() was not called, mx_finalize() was called, or "
                              "fork() made this process."))
            if "mx_endpoint_t endpoint" in self.declarations[0]:
                codes.append(("MX_BAD_ENDPOINT", "endpoint is not an open endpoint."))
            return codes
        if self.header not in PORTALS or not self.declarations[0].startswith("int ") or self.names[0] in NO_CODES:
            return []
        return [SUCCESS] if self.names[0] in ALWAYS else [SUCCESS, (PORTALS[self.header][0], CLOSED)]


def comment_text(comment):
    """A comment's lines without their marks; the indentation of arguments stays."""
    lines = comment[2:-2].rstrip().split("\n")
    lines = [re.sub(r"^ \* ?", "", line) if n else line.lstrip() for n, line in enumerate(lines)]
    return [line.rstrip() for line in lines]


def defines(text):
    """The constants that follow a type, with the comments about them."""
    lines, end = text.split("\n"), 0
    for number, line in enumerate(lines):
        if line.startswith("#define") or (end == number and line.startswith((" ", "\t"))):
            end = number + 1
        elif line.startswith("/* --- ") or number > 0 and line and not line.startswith(("/*", " *")):
            break
    return "\n".join(lines[:end])


def macro_add(function, line):
    """A macro without arguments that calls the function before it is a function, too, to a program."""
    macro = re.match(r"#define (\w+)\(\) (\w+)\(", line)
    if macro and macro.group(2) in function.names:
        function.declarations.append(f"{function.declarations[0].split()[0]} {macro.group(1)}(void);")
        function.names.append(macro.group(1))


def macros_read(function):
    """A comment's lines "macro DECLARATION" declare what the header has as a macro."""
    for line in [line for line in function.comment if line.startswith("macro ")]:
        function.comment.remove(line)
        declaration_add(function, line.partition(" ")[2])


def declaration_add(function, declaration):
    function.declarations.append(declaration)
    function.names.append(re.search(r"(\w+)\(", declaration).group(1))


def counted(function):
    """The functions with 0 to 16 arguments that go with one whose number of arguments is an argument."""
    if not function.names or not AM.match(function.names[0]):
        return
    for count in range(ARGUMENTS + 1):
        more = "".join(f", gasnet_handlerarg_t a{n}" for n in range(count))
        one = Function([line for line in function.comment if not line.startswith("  numargs")], function.group, function.number, function.header)
        declaration_add(one, function.declarations[0].replace("(", f"{count}(", 1).replace(", int numargs, ...", more))
        yield one


def header_read(path):
    """Its functions in order, and the definitions of its types by name."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    functions, types = [], {}
    for match in re.finditer(r"^(?:typedef )?(?:struct|enum|union)(?: \w+)? \{\n.*?^\}[^;]*;|^typedef (?:enum \{[^\n]*\}|[^{};]*) ?\w+;",
                             text, re.MULTILINE | re.DOTALL):
        definition = match.group(0) + defines(text[match.end():])
        for name in re.findall(r"^(?:typedef )?((?:struct|enum) \w+) \{", definition) + \
                re.findall(r"(\w+);$", match.group(0)):
            types.setdefault(name, definition)
    for block in re.findall(r"(?:^#define PTL_\w+ .*\n)+", text, re.MULTILINE):
        prefixes = {"_".join(name.split("_")[:2]) for name in re.findall(r"#define (\w+)", block)}
        if len(prefixes) == 1:
            types[prefixes.pop() + "_..."] = block.rstrip()
    section, number, general = "", "", []
    name = os.path.basename(path)
    pattern = r"/\*.*?\*/|^(?:PTL_API|MX_FUNCTION|GASNET_FUNCTION) [^;]*;|^[^\n]*\n"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        item = match.group(0)
        if item.startswith("/*"):
            following = text[match.end():].lstrip("\n")
            if following.startswith("MX_FUNCTION extern"):
                continue
            if following.startswith(("PTL_API", "MX_FUNCTION")) or (name in GASNET and ("* macro " in item or re.match(
                    r"GASNET_FUNCTION (?!.*(?:gasnet_postern|GASNET_POSTERN))", following))):
                functions.append(Function(comment_text(item), section, number, name))
                if item.startswith("/* The same"):
                    functions[-1].like = functions[-2]
            elif item.startswith("/* --- "):
                number, *section = comment_text(item)
            elif name not in GASNET and not following.startswith(("typedef", "struct", "enum", "#")):
                words = " ".join(" ".join(comment_text(item)).split())
                if words.startswith("What all functions have in common: "):
                    words = words[len("What all functions have in common: "):]
                    general.append(words[0].upper() + words[1:])
                section = re.sub(r"^([\d., ]*\d )?[^.]*(\. |$)", "", words)
                number = words
        elif item.startswith(("PTL_API", "MX_FUNCTION", "GASNET_FUNCTION")) and " extern " not in item:
            if "gasnet_postern" not in item and "GASNET_POSTERN" not in item:
                declaration_add(functions[-1], item.partition(" ")[2].replace("\n\t", "\n    ").replace(" __attribute__((noreturn))", ""))
                functions += counted(functions[-1])
        elif functions and item.startswith("#define ") and name not in GASNET:
            macro_add(functions[-1], item)
    for function in functions:
        macros_read(function)
    return functions, types, general


def sentence(text):
    """The first one, for NAME: without a capital and its end."""
    text = re.split(r"(?<=[^A-Z0-9])[.;?:](?: |$)", text)[0].strip().rstrip(".")
    return text if text[:2].isupper() or text.startswith(("Ptl", "mx_")) else text[0].lower() + text[1:]


def parts(comment):
    """Number of the specification's section; description; arguments; what follows them; what it returns; codes."""
    lines = list(comment)
    number = re.match(r"(\d[\d.]*(?:, \d+\.)?) ", lines[0])
    if number:
        lines[0] = lines[0][number.end():]
    arguments, codes = [], []
    description, extra, returns = [], [], []
    text, items = description, arguments
    for line in lines:
        item = re.match(r"  (the others|the arguments|not 0|-?\w+(?:, \w+)*)\s+(\S.*)", line)
        if line.startswith("Returns"):
            text, items = returns, codes
        if item and not line.startswith("   "):
            items.append([item.group(1), item.group(2)])
        elif line.startswith("   ") and items:
            items[-1][1] += " " + line.strip()
        else:
            if items is arguments and arguments:
                text = extra
            text.append(line)
    if returns == ["Returns"]:
        returns = []
    return (number.group(1) if number else "", " ".join(description), arguments, " ".join(extra), " ".join(returns),
            codes)


def types_of(function, types):
    """Definitions of what the declarations and those definitions name, each once."""
    found, queue = [], [" ".join(function.declarations)]
    while queue:
        text = re.sub(r"\w+\(", " ", queue.pop(0))
        for name in re.findall(r"(?:struct|enum) postern_\w+", text) + re.findall(r"\bptl_\w+_t\b", text) + \
                re.findall(r"\bmx_(?!return_)\w+_t\b|enum mx_(?!return_)\w+|\bgasnet_(?!hsl)\w+_t\b", text):
            definition = types.get(name)
            if definition and definition not in found:
                found.append(definition)
                queue.append(definition)
    words = " ".join(function.comment)
    found += [definition for prefix, definition in types.items() if prefix.endswith("...") and prefix in words]
    return [definition for definition in found if "{" in definition or "#define" in definition]


def examples_read(path):
    """Examples by the names of functions: the bodies of those functions of a C file before which a comment names them."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = {}
    for names_of, body in re.findall(r"^/\* Example: ((?:[^*]| \* )*?) \*/\n.*?\n\{\n(.*?)\n\}$", text, re.MULTILINE | re.DOTALL):
        for name in names_of.replace("*", " ").split():
            found[name] = "\n".join(line[1:] if line.startswith("\t") else line for line in body.split("\n"))
    return found


def references(name, text, functions_of_all, header):
    """The functions whose pages a text such as "as in PtlPut" refers to; those without Triggered are the plain ones."""
    text = re.sub("the plain functions?", name.replace("Triggered", ""), text)
    return [one for other in re.findall(r"\bPtl\w+", text) for one in functions_of_all
            if other in one.names and one.header == header]


def arguments_told(name, function, functions_of_all):
    """What a comment says of arguments, and what the comments say that it refers to."""
    declared = set(re.findall(r"\w+", next(one for one in function.declarations if name + "(" in one)))
    told = []
    for argument, text in parts(function.comment)[2]:
        if argument in ("the others", "the arguments"):
            for other in references(name, text, functions_of_all, function.header):
                more = arguments_told(other.names[0] if name not in other.names else name, other, functions_of_all)
                known = {word for names_of, _ in told for word in names_of.split(", ")}
                told += [(names_of, also) for names_of, also in more
                         if declared.issuperset(names_of.split(", ")) and not known & set(names_of.split(", "))]
        else:
            told.append((argument, text))
    return told


def code_told(name, code, text, functions_of_all, header):
    """When a function returns a code; if that is "as" another function, then also what that one's comment says of it."""
    if not text.startswith("As "):
        return text
    text = text.replace("the plain function", name.replace("Triggered", ""))
    for other in references(name, text, functions_of_all, header):
        for known, more in parts(other.comment)[5]:
            if known == code:
                text += f" {other.names[0]}: {code_told(other.names[0], code, more, functions_of_all, header)}"
    return text


def function_page(name, section, function, functions_of_all, types, general, examples, version):
    number, description, arguments, extra, returns, codes = parts(function.comment)
    if function.header == "portals4.h":
        arguments = arguments_told(name, function, functions_of_all)
        codes = [(code, code_told(name, code, text, functions_of_all, function.header)) for code, text in codes]
    group, group_codes = function.group, []
    if function.header in MX:
        told = [re.match(r"(MX_\w+)  +(.*)|(.*)", line).groups() for line in function.group]
        group = " ".join(" ".join(text or "" for _, _, text in told).split())
        group_codes = [(code, text) for code, text, _ in told
                       if code and re.search(MX_GROUP.get(code, "segments_list"), function.declarations[0])]
        codes = [(code, text) for code, text in codes if code != "the"]  # "the codes above" are the group's
        if function.like:
            description = description.replace("The same", f"The same as {function.like.names[0]}()", 1)
            _, _, also, _, _, others = parts(function.like.comment)
            arguments = arguments or [(argument, text) for argument, text in also if argument in function.declarations[0]]
            codes = codes or [(code, text) for code, text in others if code != "the" and
                              ("MASK" not in code or "mask" in function.declarations[0])]
    page = head(name, section, version, ", ".join(function.names), sentence(description))
    page += f".SH SYNOPSIS\n.nf\n.B #include <{function.header}>\n.PP\n"
    page += "\n".join(".B " + roff(line).replace('"', '\\(dq') if n == 0 else roff(line)
                      for declaration in function.declarations
                      for n, line in enumerate(wrapped(" ".join(declaration.split()), " " * 4))) + "\n.fi\n"
    page += f".SH DESCRIPTION\n{flow(description)}\n"
    for argument, text in arguments:
        page += tagged(argument, re.sub(r"^out\b", "output", text))
    if extra:
        page += f".PP\n{flow(extra)}\n"
    codes = function.codes_of_all() + codes + group_codes
    if returns or codes:
        page += ".SH RETURN VALUE\n" + (flow(returns) + "\n" if returns else "")
        page += "".join(tagged(code, text) for code, text in codes)
    if function.header in GASNET:
        group = " ".join(group)
    notes = [group] if group else []
    if function.header in PORTALS:
        notes += general
        if number and PORTALS[function.header][1]:
            notes.append(f"This is section {number} of {PORTALS[function.header][1]}.")
    for n, note in enumerate(notes):
        page += (".SH NOTES\n" if n == 0 else ".PP\n") + flow(note) + "\n"
    shown = examples.get(name) or examples.get(name.rstrip("0123456789"))
    if shown:
        page += ".SH EXAMPLES\n" + literal(source(shown))
    definitions = types_of(function, types)
    if definitions:
        page += ".SH TYPES\n" + ".PP\n".join(literal(source(definition)) for definition in definitions)
    # Related pages: those of the same section, and those that the example uses.
    used = re.findall(r"\b(\w+)\(", examples.get(name, ""))
    related = [other for one in functions_of_all for other in one.names if other != name and not (AM.match(other) and AM.match(other).group(1)) and
               (other in used or (one.number, one.header) == (function.number, function.header))]
    return page + see(section, [f"{other}({section})" for other in related])


def headers_read(paths):
    """All functions, and what their pages need. Several may share a comment, and have the same page under their names."""
    functions, types, general = [], {}, []
    for path in paths:
        more, definitions, notes = header_read(path)
        functions += more
        types.update(definitions)
        general += notes
    return functions, types, general


def functions(directory, version, section, shown, *headers):
    found, types, general = headers_read(headers)
    examples = examples_read(shown)
    for function in found:
        for name in function.names:
            write(os.path.join(directory, f"{name}.{section}"),
                  function_page(name, section, function, found, types, general, examples, version))


def names(*headers):
    for function in headers_read(headers)[0]:
        print("\n".join(function.names))


# --- programs


def help_text(*words):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PTL_")}
    return subprocess.run([*words, "--help"], stdout=subprocess.PIPE, check=True, text=True, env=environment).stdout


def help_parts(text):
    """The usage, the blocks of text behind it, and what is said of exit codes."""
    usage, _, rest = text.partition("\n\n")
    rest, _, codes = re.sub(r"\n+(?=Exit codes?: )", "\n\n", rest).partition("\n\nExit codes: ")
    codes, _, more = codes.partition("\n\n")
    usage = re.sub(r"^(Usage: |\s+)", "", usage, flags=re.MULTILINE)
    return usage.strip(), [block.split("\n") for block in (rest + "\n\n" + more).strip().split("\n\n")], codes


def help_body(blocks_of_text):
    """Paragraphs, and options with their meaning."""
    result, text = "", True  # text: the last line was some
    for number, block in enumerate(blocks_of_text):
        apart = number > 0  # a paragraph begins
        while block:
            line = block.pop(0)
            option = re.match(r" +(\S.*?)(?:  +(\S.*))?$", line)
            if not option:
                result += (".PP\n" if apart or not text else "") + flow(line) + "\n"
                apart, text = False, True
                continue
            tag, meaning = option.group(1), option.group(2) or ""
            column = len(line) - len(meaning)
            while block and block[0].startswith(" " * (column if meaning else 8)):
                meaning += " " + block.pop(0).strip()
            result += tagged(tag, meaning)
            apart, text = False, False
    return result


def program(page, version, summary, path, *commands):
    name = os.path.basename(page).partition(".")[0]
    usage, body, codes = help_parts(help_text(path))
    result = head(name, "1", version, name, summary)
    result += f".SH SYNOPSIS\n.nf\n{roff(usage)}\n.fi\n.SH DESCRIPTION\n{help_body(body)}"
    for command in commands:
        _, body, more = help_parts(help_text(path, command))
        result += f".SH {command.upper()}\n{help_body(body)}"
        codes = codes or more
    if codes:
        result += f".SH EXIT STATUS\n{flow(codes)}\n"
    result += (".SH ENVIRONMENT\nThe settings, environment variables whose names begin with PTL_, are those of\n"
               ".BR postern\\-settings (7).\n")
    write(page, result + see("1"))


# --- settings and counters


def settings(page, version, lists):
    def rows(what):
        text = subprocess.run([lists, what], stdout=subprocess.PIPE, check=True, text=True).stdout
        return [line.split("\t") for line in text.splitlines()]

    result = head("postern-settings", "7", version, "postern-settings", "settings and counters of Postern")
    result += (".SH DESCRIPTION\nA program that uses Postern reads its settings from environment variables when it calls\n"
               ".BR PtlInit (3).\nLists have one item per interface, separated by semicolons; the last item serves those that\n"
               "follow. An invalid value is refused with a sentence; unknown PTL_ variables produce a warning.\n"
               ".BR postern\\-info (1)\nshows them with their values.\n.SH SETTINGS\n")
    for name, fallback, text in rows("settings"):
        result += tagged(name, f"{text} Default: {fallback or 'nothing'}.")
    result += (".SH COUNTERS\nWhat an interface counts, as\n.BR postern_stats (3)\nand the programs show it.\n")
    for name, text in rows("counters"):
        result += tagged(name, text)
    write(page, result + see("7", ["postern-info(1)", "postern_settings(3)", "postern_stats(3)"]))


# --- Markdown


def inline(text):
    """Filled text in which **bold**, `code` and *words* stand out, and links say where they lead."""
    text = roff(" ".join(text.split()))
    text = re.sub(r"\[([^]]*)\]\(([^)]*)\)", r"\1 (\2)", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"\\fB\1\\fP", text)
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fP", text)
    return re.sub(r"(?<![\w*])\*([^* ][^*]*)\*(?!\w)", r"\\fI\1\\fP", text)


def table(lines):
    """Rows as tagged paragraphs: the first cell, then each other behind its column's title."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    titles, result = rows[0], ""
    for row in rows[2:]:
        cells = [(f"{title}: " if title and len(row) > 2 else "") + cell
                 for title, cell in zip(titles[1:], row[1:]) if cell]
        result += f".TP\n{inline(row[0]) or NOTHING}\n{inline('; '.join(cells)) or NOTHING}\n"
    return result


def blocks(lines):
    """Groups of lines: code, tables, headings, items, paragraphs."""
    group, kind = [], None
    for line in lines + [""]:
        if line.startswith("    ") and kind in (None, "code"):
            new = "code"
        elif not line.strip():
            new = "code" if kind == "code" else None
        elif line.startswith("|"):
            new = "table"
        elif line.startswith("#"):
            new = "heading"
        elif line.startswith("* "):
            new = "item"
        elif kind in ("item", "paragraph"):
            new = kind
        else:
            new = "paragraph"
        if group and (new != kind or new == "heading" or (new == "item" and line.startswith("* "))):
            yield kind, group
            group = []
        kind = new
        if new is not None:
            group.append(line)
    if group:
        yield kind, group


def code(lines):
    while lines and not lines[-1].strip():
        lines.pop()
    return ".PP\n" + literal("\n".join(line[4:] for line in lines))


def markdown_page(page, version, summary, path):
    name = os.path.basename(page).partition(".")[0]
    with open(path, encoding="utf-8") as file:
        lines = file.read().rstrip("\n").split("\n")
    result = head(name, "7", version, name, summary)
    begun = False  # the text of a section
    for kind, group in blocks(lines[1:]):
        if kind == "heading":
            level, title = re.match(r"(#+) (.*)", group[0]).groups()
            result += f".S{'H' if level == '##' else 'S'} {inline(title.upper() if level == '##' else title)}\n"
            begun = False
            continue
        if not begun and ".SH" not in result.split("NAME", 1)[1]:
            result += ".SH DESCRIPTION\n"
        if kind == "code":
            result += code(list(group)) if begun else code(list(group))[len(".PP\n"):]
        elif kind == "table":
            result += table(group)
        elif kind == "item":
            result += f".IP \\(bu 2\n{inline(' '.join(group)[2:])}\n"
        else:
            result += (".PP\n" if begun else "") + inline(" ".join(group)) + "\n"
        begun = True
    return result


def markdown(page, version, summary, path):
    write(page, markdown_page(page, version, summary, path) + see("7"))


def overview(page, version, summary, path, *others):
    """A page that ends with a list of all others and what they are about."""
    result = markdown_page(page, version, summary, path) + ".SH PAGES\n"
    found = {}
    for other in others:
        with open(other, encoding="utf-8") as file:
            about = re.search(r"^\.SH NAME\n(.*) \\- (.*)$", file.read(), re.MULTILINE)
        found.setdefault(about.group(2), []).append(re.sub(r"\.(\d\w*)$", r"(\1)", os.path.basename(other)))
    for about, pages in found.items():
        result += f".TP\n.B {roff(', '.join(pages))}\n{about}\n"
    write(page, result)




def main():
    modes = {"names": names, "functions": functions, "program": program, "settings": settings, "markdown": markdown,
             "overview": overview}
    if len(sys.argv) < 2 or sys.argv[1] not in modes:
        print(__doc__, file=sys.stderr)
        return 2
    modes[sys.argv[1]](*sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
