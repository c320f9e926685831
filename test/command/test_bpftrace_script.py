"""bpftrace scripts, limited to one process."""
import os
import re
import unittest

from dyntrace_command.tracers.bpftrace_script import MOST, Unsure, limited, lookup

CONDITION = " if (!(pid == 7)) { return; }"


class Limits(unittest.TestCase):
    """A script limited to one process."""

    # Each @ marks the place of a condition.
    LIMITED = (
        "usdt:$1:a:b {@ }", "usdt:$1:a:b{@}", "U:/x.so:b {@ }", "uprobe:/x:f {@ }", "ur:/x:f {@ }", "u*:/x:f {@ }",
        "*:/x:f {@ }", "$3:/x:f {@ }", "BEGIN { printf(\"{ usdt:\"); }",
        "BEGIN { printf(\"\\\"}{\"); }\nusdt:x:y:z {@ }",
        "// usdt:x:y:z {\nBEGIN { } // }\nusdt:x:y:z /arg0 == 1/ // {\n{@ exit(); }",
        "/* { */ END { if (1) { @a = 1; } }usdt:x:y:z {@ if (1) { } else { } } interval:s:1, profile:hz:9 { }",
        "BEGIN, usdt:x:y:z {@ }", "usdt:x:y:z,\n  usdt:x:y:w /str(arg0) == \"{\"/\n{@ }", "usdt:\"/a {b}\":y:z {@ }",
        "BEGIN { } usdt:x:y:z // usage {\n{@ }", "kprobe:f /str(arg0, 3) == \"a\"/ { }", "t:a:b { }",
        "struct a { int b; };\nusdt:x:y:z {@ }", "#include <linux/sched.h>\n#define N 3\nusdt:x:y:z {@ }",
        "config = { a = 1 }\nusdt:x:y:z {@ }", "let @a = hash(5);\nusdt:x:y:z {@ }", "fn f($a: int): int { return 1; }",
        "#!/usr/bin/env bpftrace\nusdt:x:y:z {@ }", "BEGIN { $a = 1 / 2; /* } */ } usdt:x:y:z {@ }", "newprobe:x {@ }",
        "/* a *//* { */ usdt:x:y:z {@ }", "", "// nothing")
    UNSURE = (
        "BEGIN {", "BEGIN }", "usdt:x:y:z", "BEGIN { \" }", "BEGIN { /* }", "BEGIN { '{' }",
        "usdt:/a/*/x.so:y:z { } /* */",
        "usdt:/a//x.so:y:z { }", "#define X }\nBEGIN { X usdt:x:y:z { }", "#define pid 7\nusdt:x:y:z { }",
        "#define return \nusdt:x:y:z { }", "#define if(x) while\nusdt:x:y:z { }", "#define A \\\n }\nBEGIN { }",
        "#define A \"\nBEGIN { }", "#ifdef A\nBEGIN { }\n#endif", "BEGIN { # }", "import \"other.bt\";",
        "usdt:x:y:z /@a++/ { }",
        "usdt:x:y:z /@a = 1/ { }", "BEGIN { }\0", "BEGIN { } }", "x" * (MOST + 1))

    def test_lookup(self) -> None:
        """Words in the code that make bpftrace look up names of functions. Addresses need no names."""
        cases = {"usdt:x:y:z {\n print(ustack(3)); }": "line 2 has ustack", "profile:hz:9 { @[ustack] = count(); }":
                 "line 1 has ustack", "u:/x:f { @[usym(reg(\"ip\"))] = count(); }": "line 1 has usym",
                 "u:/x:f { @[func] = count(); }": "line 1 has func", "#define S ustack(perf)\n": "line 1 has ustack",
                 "/* ustack */ // usym\nBEGIN { @func = $usym + @ustack; printf(\"func\"); }": "",
                 "usdt:x:y:z { @[ustack( raw, 3)] = count(); }": "", "k:f { print(args.func); print(kstack(3)); }": ""}
        for script, found in cases.items():
            with self.subTest(script):
                self.assertEqual(found, lookup(script))

    def test_limited(self) -> None:
        """Each block of a library's probe gets the condition, and nothing else is changed."""
        for script in self.LIMITED:
            with self.subTest(script):
                self.assertEqual(script.replace("{@", "{" + CONDITION), limited(script.replace("{@", "{"), "pid == 7"))

    def test_unsure(self) -> None:
        """Code that bpftrace might parse differently is an error."""
        for script in self.UNSURE:
            with self.subTest(script[:60]), self.assertRaises(Unsure):
                limited(script, "pid == 7")

    def test_shipped(self) -> None:
        """The blocks of all USDT probes in the shipped scripts get it; line numbers are unchanged."""
        folder = os.path.join(os.path.dirname(__file__), "../../priv/bpftrace")
        for name in os.listdir(folder):
            with self.subTest(name), open(os.path.join(folder, name), encoding="utf-8") as file:
                script = file.read()
                result = limited(script, "pid == 7")
                self.assertEqual(script, result.replace(CONDITION, ""))
                self.assertEqual(len(re.findall(r"^(?:\} )?usdt:\S+(?<!,)\s", script, re.M)), result.count(CONDITION))
