"""Causes as arguments of --when, how often they may write, and the folder that they write into."""
import argparse
import fnmatch
import os
import re
import tempfile
import time
import unittest
from unittest import mock

from dyntrace_command.commands.record import causes_of
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.trigger_causes import CAUSES, LOGGED_CRASH, REQUESTED, parsed
from dyntrace_command.common.trigger_rate import AtMost, Rate
from dyntrace_command.host.trees import folder_size
from dyntrace_command.recording.session import Session, Wanted
from dyntrace_command.recording.snapshots import NAME, RecorderFolder, is_recorded_into, snapshot_at, snapshots
from dyntrace_command.recording.triggers import Triggers
from hostile import make_deep


class Causes(unittest.TestCase):
    """Arguments of --when."""

    def test_words(self) -> None:
        """Each has an event, a filter and a name that is valid for a folder."""
        for word, name, event, condition in [
                ("long_gc", "long_gc", "vm_long_gc", ""),
                ("mark:cart/full", "mark-cart_full", "user_mark", 'name == "cart/full"'),
                ("message_send /size > 1000/", "message_send", "message_send", "size > 1000"),
                ("mark:käse", "mark-k_se", "user_mark", 'name == "käse"'),
                ("org_erlang_dyntrace:log", "log", "log", ""),
                ("org_erlang_otp:driver_init", "driver_init", "org_erlang_otp:driver_init", ""),
                ('log /text == "a/b"/', "log", "log", 'text == "a/b"')]:
            cause = parsed(word)
            assert cause
            self.assertEqual((cause.name, cause.event, cause.filter), (name, event, condition))
            self.assertRegex(f"20261125-031502-{name}", NAME)
        self.assertEqual([parsed(word) for word in CAUSES], list(CAUSES.values()))

    def test_crash(self) -> None:
        """The filter leaves out all reasons of the table, from any process."""
        condition = CAUSES["crash"].filter
        patterns = re.findall(r'reason != "([^"]*)"', condition)
        self.assertEqual(condition, " && ".join(f'reason != "{pattern}"' for pattern in patterns))
        for reason, is_crash in [("normal", False), ("killed", False), ("enoent", False), ("tcp_closed", False),
                                 ("ok", False), ("{ok,lists,<<70,79,82>>}", False), ("okay", True),
                                 ("{shutdown,{failed,1}}", False), ("{#Ref<0.1.2.3>,return,60}", False),
                                 ("{reference(),exit,term()}", False), ("{#Ref<0.1.2.3>,timeout}", True),
                                 ("shutdown_failed", True), ("{badmatch,{error,enoent}}", True)]:
            found = any(fnmatch.fnmatchcase(reason, pattern) for pattern in patterns)
            self.assertEqual(is_crash, not found, reason)

    def test_crash_text(self) -> None:
        """A report is described by the name or the initial call, and by the reason or the text."""
        for name, initial, reason, text, expected in [
                ("shop_oven", "shop:bake/1", "{burnt,bread}", "crasher: ...", "shop_oven {burnt,bread}"),
                ("", "shop:bake/1", "{burnt,bread}", "crasher: ...", "shop:bake/1 {burnt,bread}"),
                ("", "", "", "a request failed", "a request failed")]:
            self.assertEqual(f"<0.9.0> {expected}", LOGGED_CRASH.text(["<0.9.0>", name, initial, reason, text]))

    def test_calls(self) -> None:
        """The filter has the function and the time; the name is valid for a folder."""
        for word, name, condition in [
                ("call:shop_cart:add/2 > 500ms", "call-shop_cart_add-2",
                 '(entry == "shop_cart:add/2") && duration > 500000000'),
                ("call:'Elixir.Shop':buy!>1.5 s", "call-Elixir.Shop_buy_",
                 "(entry == \"'Elixir.Shop':'buy!'/*\") && duration > 1500000000")]:
            cause = parsed(word)
            assert cause and cause.function
            self.assertEqual((cause.name, cause.event, cause.filter), (name, "function_duration", condition))
            self.assertRegex(f"20261125-031502-{cause.name}", NAME)
            self.assertEqual(cause.text(["<0.1.0>", cause.function.show(), "512345000"]),
                             f"<0.1.0> {cause.function.show()} 512 ms")
            self.assertEqual(cause.text(["<0.1.0>", "", "soon"]), "<0.1.0> ")
            self.assertEqual(cause.text(["", "", "83456000000"]), "83456 ms")
        longest = parsed(f"call:{'m' * 255}:{'f' * 255}/2 > 1s")
        assert longest
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, f"20261125-031502-{longest.name}-99"))
        for word in ("call:", "call:a:b/01 > 5s", "call:a:b/1", "call:a:b/1 > 5", "call:a:b/1 > 5 weeks", "call:a > 5s",
                     "call:a:b/1 > -1s", 'call:a:b"/1 > 5s'):
            with self.assertRaisesRegex(ValueError, "must be like `call:"):
                parsed(word)

    def test_once(self) -> None:
        """A cause that is written twice is one cause; so are two spellings of a time."""
        words = ["call:a:b/1 > 500ms", "call:a:b/1 > 0.5s", "call:a:b/1 > 1s", "crash", "error", "crash", "end"]
        options = argparse.Namespace(when=list(map(parsed, words)), full=False, events=[], functions=[])
        self.assertEqual([parsed(words[0]), parsed(words[2]), LOGGED_CRASH, CAUSES["error"], REQUESTED],
                         causes_of(options))

    def test_none(self) -> None:
        """An event that is not recorded would never fire."""
        for word in ("", "crashes", "mark:", 'mark:a"', "mark:a*", "process_exits", "log level", "../x", "a:b /c/"):
            self.assertIsNone(parsed(word), word)


class Rates(unittest.TestCase):
    """Limits on the number of snapshots per period, and to one in ten seconds."""

    def test_rate(self) -> None:
        """Snapshots of an earlier recorder count; snapshots from the future do not."""
        rate = Rate(AtMost(2, 60), [900, 5000])
        self.assertTrue(rate.allows(1000))
        rate.took(1000)
        self.assertFalse(rate.allows(1009))
        self.assertTrue(rate.allows(1010))
        rate.took(1010)
        self.assertTrue(rate.is_spent())
        self.assertFalse(rate.allows(1059))
        self.assertTrue(rate.allows(1061))

    def test_tries(self) -> None:
        """A failed attempt does not use up the limit, but delays the next one."""
        rate = Rate(AtMost(1, 3600))
        rate.tries(1000)
        self.assertEqual([rate.allows(now) for now in (1001, 1010)], [False, True])


class Notified(unittest.TestCase):
    """Lines of the program that the daemon notifies, which runs as another user."""

    def test_lines(self) -> None:
        """Only lines of known triggers, with texts, count."""
        triggers = Triggers.__new__(Triggers)
        node = mock.Mock()
        triggers.names, triggers.of = ["a", "b"], [(CAUSES["crash"], node)]
        fired = triggers.parsed(b'["a", ["<0.1.0>", "boom"]]')
        assert fired
        self.assertEqual((fired.cause.name, fired.node, fired.text), ("crash", node, "<0.1.0> boom"))
        for line in (b"", b"null", b"\xff", b"[]", b'["b", []]', b'["c", []]', b'["a", [1]]', b'["a", 1]', b'{"a": 1}',
                     b"[" * 9000):
            self.assertIsNone(triggers.parsed(line), line)


    def test_ended(self) -> None:
        """A node that has ended and has not yet come back has no triggers."""
        triggers = Triggers.__new__(Triggers)
        triggers.names, triggers.causes = ["a", "b"], [CAUSES["crash"]]
        triggers.are_set, triggers.listener = False, None
        triggers.daemon, here, gone = mock.Mock(), mock.Mock(), mock.Mock()
        here.process.namespace.return_value, here.process.inner_pid.return_value = "pid:[7]", 42
        gone.process.inner_pid.side_effect = FileNotFoundError
        with mock.patch.object(Triggers, "listen"):
            triggers.set([gone, here])
        self.assertEqual(triggers.of, [(CAUSES["crash"], here)])
        added = triggers.daemon.do.call_args.args
        self.assertTrue(any(text.startswith("--filter=$ctx.vpid == 42 && $ctx.pid_ns == 7 && (") for text in added))


class Events(unittest.TestCase):
    """The events that a session records for causes."""

    def test_once(self) -> None:
        """Each event is enabled once, also if several causes, or the names, need it."""
        session = Session.__new__(Session)
        causes = [parsed(text) for text in ('message_receive /to == "a"/', 'message_receive /to == "b"/',
                                            'process_identity /name == "a"/')]
        session.wanted = Wanted(causes=[cause for cause in causes if cause], snapshot=True)
        names = [name for names in session.channels().values() for name in names]
        self.assertEqual(sorted(set(names)), sorted(names))
        self.assertEqual(sum("message_receive" in name for name in names), 1)

    def test_calls(self) -> None:
        """Only calls that are causes are recorded: their event is enabled with a filter."""
        session = Session.__new__(Session)
        cause = parsed("call:shop_cart:add/2 > 500ms")
        assert cause
        session.wanted, session.of_session, session.daemon = Wanted(causes=[cause]), ("-u", "-s", "s"), mock.Mock()
        self.assertNotIn("org_erlang_dyntrace:function_duration", session.channels()["events"])
        session.add_long_calls("events")
        self.assertEqual(session.daemon.do.call_args.args,
                         ("enable-event", "-u", "-s", "s", "-c", "events", "org_erlang_dyntrace:function_duration",
                          '--filter=(entry == "shop_cart:add/2") && duration > 500000000'))

    def test_patterns(self) -> None:
        """The events that a cause's pattern matches are enabled, without those of the chosen groups."""
        session = Session.__new__(Session)
        session.wanted = Wanted(causes=[CAUSES["busy_port"]], groups=["gc"])
        self.assertEqual([name for name in session.channels()["events"] if "busy" in name],
                         ["org_erlang_dyntrace:vm_busy_port", "org_erlang_dyntrace:vm_busy_dist_port"])
        session.wanted = Wanted(causes=[CAUSES["busy_port"]], groups=["vm"])
        self.assertEqual(len(session.channels()["events"]), len(set(session.channels()["events"])))


class Folders(unittest.TestCase):
    """The folder of a recorder."""

    def setUp(self) -> None:
        self.folder = os.path.join(self.enter(), "snapshots")

    def enter(self) -> str:
        """Returns a folder that is removed at the end."""
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        return temporary.name

    def write(self, place: RecorderFolder, now: float) -> str:
        """Writes a snapshot, and returns its folder."""
        with place.begun("crash", "shop@here", now, "boom") as snapshot:
            snapshot.save()
        place.prune()
        return snapshot.path

    def test_kept(self) -> None:
        """The latest are retained; two in the same second have separate folders."""
        place = RecorderFolder(self.folder, 2)
        paths = [self.write(place, now) for now in (1.5, 100, 100.5)]
        self.assertEqual([one.path for one in snapshots(self.folder)], paths[1:])
        self.assertEqual([os.path.exists(path) for path in paths], [False, True, True])

    def test_read(self) -> None:
        """A snapshot is found by its folder or by that of the recording."""
        path = self.write(RecorderFolder(self.folder, 2), 1.5)
        for folder in (path, os.path.join(path, "recording")):
            snapshot = snapshot_at(folder)
            assert snapshot
            self.assertEqual((snapshot.cause, snapshot.node, snapshot.time, snapshot.text, snapshot.more),
                             ("crash", "shop@here", 1.5, "boom", 0))
        self.assertIsNone(snapshot_at(self.folder))

    def test_incomplete(self) -> None:
        """Snapshots that failed or that a killed recorder left incomplete are removed; nothing else is."""
        place = RecorderFolder(self.folder, 2)
        with self.assertRaises(OSError), place.begun("crash", "shop@here", 1.5, ""):
            raise OSError("no space left")
        self.assertEqual(os.listdir(self.folder), [])
        os.makedirs(os.path.join(self.folder, "20261125-031502-crash", "recording"))
        mine = ["20240101-123456-wedding", "mine"]
        os.makedirs(os.path.join(self.folder, mine[0], "photographs"))
        os.mkdir(os.path.join(self.folder, mine[1]))
        with place.alone():
            self.assertEqual(sorted(os.listdir(self.folder)), mine)

    def test_set_back(self) -> None:
        """After the clock was set back, snapshots from the future are removed first."""
        place = RecorderFolder(self.folder, 1)
        self.write(place, time.time() + 1000)
        new = self.write(place, time.time() - 1)
        self.assertEqual([one.path for one in snapshots(self.folder)], [new])

    def test_of_others(self) -> None:
        """A cause.json in a folder above is ignored, and that folder is not removed."""
        place = RecorderFolder(self.folder, 1)
        for folder in (self.folder, self.write(place, 1.5)):
            with open(os.path.join(folder, "cause.json"), "w", encoding="utf-8") as file:
                if folder == self.folder:
                    file.write('{"cause": "", "node": "", "time": 1, "text": "", "more": 0}')
        self.assertEqual(snapshots(self.folder), [])
        self.assertIsNone(snapshot_at(os.path.join(self.folder, "other")))
        place.prune()
        self.assertTrue(os.path.isdir(self.folder))

    def test_deep(self) -> None:
        """A daemon's user may nest folders deeper than Python's stack allows."""
        place = RecorderFolder(self.folder, 1)
        make_deep(os.path.join(self.write(place, 1.5), "recording"), 1500)
        folder_size(self.folder)
        new = self.write(place, 2.5)
        self.assertEqual(os.listdir(self.folder), [os.path.basename(new)])

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_way(self) -> None:
        """Root does not write below a folder that another user owns or that is open to all."""
        for mode, owner in ((0o755, 65534), (0o777, 0)):
            above = self.enter()
            os.chmod(above, mode)
            os.chown(above, owner, -1)
            with self.assertRaises(Failure):
                RecorderFolder(os.path.join(above, "snapshots"), 1)
            self.assertEqual(os.listdir(above), [])

    def test_alone(self) -> None:
        """A folder has at most one recorder at a time."""
        place = RecorderFolder(self.folder, 2)
        self.assertFalse(is_recorded_into(self.folder))
        with place.alone():
            self.assertTrue(is_recorded_into(self.folder))
            with self.assertRaises(Failure), RecorderFolder(self.folder, 2).alone():
                pass
        self.assertFalse(is_recorded_into(self.folder))

    def test_hostile(self) -> None:
        """A malformed cause.json is ignored."""
        place = RecorderFolder(self.folder, 2)
        for text in ("", "[]", "{}", '{"cause": 1, "node": 2, "time": "x", "text": "", "more": 0}',
                     '{"cause": "", "node": "", "time": 1e300, "text": "", "more": 0}',
                     '{"cause": "", "node": "", "time": 1, "text": "", "more": Infinity}', "[" * 100000):
            path = self.write(place, 1.5)
            with open(os.path.join(path, "cause.json"), "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(snapshots(self.folder), [], text)
