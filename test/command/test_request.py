"""The steps of a request: which messages belong to it, when it is over, what is missing."""
import random
import unittest
from typing import List

from dyntrace_command.recording.request_inference import inferred
from dyntrace_command.recording.request_timeline import Step, missing, readable, show_timeline, step_of, whole_texts
from dyntrace_command.tracers.bpftrace import Names

REF, OTHER = "#Ref<0.1284983411.2761424897.183648>", "#Ref<0.1284983411.2761424897.183649>"


def call(pid: str, ref: str) -> str:
    """A request to a gen_server."""
    return f"{{'$gen_call',{{{pid},[alias|{ref}]}},pay}}"


def answer(ref: str) -> str:
    """Its answer."""
    return f"{{[alias|{ref}],paid}}"


def steps_of(*rows: str) -> List[Step]:
    """Steps, written as `kind us source target text`."""
    found = []
    for row in rows:
        kind, when, source, target, *text = row.split(" ", 4)
        found.append(Step(kind, int(when) * 1000, source, target, 0, "".join(text)))
    return found


def shown(steps: List[Step]) -> List[str]:
    """The rows."""
    return [f"{step.kind} {step.ns // 1000} {step.source} {step.target} {step.text}" for step in steps]


CALL = ["call 0 <1> - shop:buy/1", f"send 10 <1> till {call('<1>', REF)}", f"receive 20 <1> <2> {call('<1>', REF)}",
        f"send 90 <2> <1> {answer(REF)}", f"receive 95 <2> <1> {answer(REF)}", "return 100 <1> - shop:buy/1"]
CAST = ["call 0 <1> - shop:buy/1", "send 10 <1> queue {'$gen_cast',store}", "return 20 <1> - shop:buy/1",
        "receive 30 <1> <3> {'$gen_cast',store}", "send 800 <3> <1> {'$gen_cast',confirm}",
        "receive 810 <3> <1> {'$gen_cast',confirm}", "send 850 <1> log {'$gen_cast',stored}",
        "receive 900 <1> <4> {'$gen_cast',stored}"]


class Inferred(unittest.TestCase):
    """Requests without a token."""

    def test_in_any_order(self) -> None:
        """Each CPU's events arrive separately, so the return may arrive before messages of other processes."""
        steps = steps_of(*CALL)
        for seed in range(20):
            found = inferred(random.Random(seed).sample(steps, len(steps)))
            self.assertEqual((CALL, True, True), (shown(found.steps), *found[1:]))
        self.assertEqual((False, False), inferred(steps[:-1])[1:])
        # Its messages will still arrive.
        self.assertEqual((True, False), inferred([steps[0], steps[1], steps[5]])[1:])

    def test_receipts_from_before(self) -> None:
        """Messages that already waited in another process's mailbox when the request began are not part of it."""
        strange = ["receive 15 <1> <5> {sold,1}", "send 16 <5> <6> next", "receive 17 <5> <6> next"]
        found = inferred(steps_of(*CALL, *strange))
        self.assertEqual(CALL, shown(found.steps))

    def test_answers_to_others(self) -> None:
        """A busy server first answers another process, which then does something else."""
        strange = [f"send 50 <2> <7> {answer(OTHER)}", f"receive 55 <2> <7> {answer(OTHER)}", "send 60 <7> <5> sold"]
        found = inferred(steps_of(*CALL, *strange))
        self.assertEqual((CALL, True), (shown(found.steps), found.is_over))

    def test_casts(self) -> None:
        """The function returns at once. Its effects continue until all messages have been received and nothing happens
        for a while."""
        later = ["send 200000 <3> <8> tick", "receive 200010 <3> <8> tick"]
        for steps in (CAST, CAST + later):
            found = inferred(steps_of(*steps))
            self.assertEqual((CAST, True), (shown(found.steps), found.has_returned))
            self.assertEqual(steps != CAST, found.is_over)

    def test_after_the_return(self) -> None:
        """The process's later actions are not part of the request."""
        found = inferred(steps_of(*CAST[:4], "send 25 <1> <8> other", "receive 40 <1> <8> other"))
        self.assertEqual(CAST[:4], shown(found.steps))


class Missing(unittest.TestCase):
    """The output says what was not seen."""

    def test_sends(self) -> None:
        """Sends without their receipt, and a function that has not returned."""
        steps = steps_of(*CAST[:2])
        self.assertEqual(["<1> -> queue: cast store: not received", "<1> has not returned from shop:buy/1"],
                         missing(steps, Names()))
        self.assertEqual([], missing(steps_of(*CAST), Names()))
        text = show_timeline(steps, Names(), inferred=True)
        self.assertIn("\nunfinished at the end:\n  <1> -> queue: cast store: not received\n", text)
        self.assertNotIn("unfinished", show_timeline(steps_of(*CALL), Names(), inferred=True))

    def test_many(self) -> None:
        """The first ones are listed, with the number of the others."""
        lines = missing(steps_of(*(f"send {n} <1> <7> {n}" for n in range(9))), Names())
        self.assertEqual((6, "and 4 more"), (len(lines), lines[-1]))

    def test_receipts(self) -> None:
        """A receipt with a token but without its send: its waiting time is unknown."""
        steps = steps_of("send 0 <5> <6> one", "receive 9 <5> <6> one", "receive 20 <8> <6> two")
        self.assertRegex(show_timeline(steps, Names(), inferred=False),
                         r"\n +20 {22,}<6> receives from <8>: two \(send not seen\)\n")


class Lines(unittest.TestCase):
    """Steps as they are printed."""

    def test_pieces(self) -> None:
        """The second piece of a text counts only if the first one is full."""
        full = "x" * 63
        for fields, text in ((["send", "1", "<5>", "b", "0", "short", "garbage"], "short"),
                             (["send", "1", "<5>", "b", "0", full, "yz"], full + "yz"),
                             (["send", "1", "<5>", "b", "7", "one\ttext"], "one\ttext")):
            step = step_of(fields)
            assert step
            self.assertEqual(text, step.text)
        self.assertEqual(Step("send", 1, "<5>", "b", 7, full + "yz"),
                         whole_texts([Step("send", 1, "<5>", "b", 7, full), Step("more", 1, "<5>", "", 7, "yz")])[0])

    def test_readable(self) -> None:
        """Messages of OTP's behaviours are shown by what they do; cut ones, too. Other texts stay as they are."""
        for text, expected in ((call("<0.1.0>", REF), "call pay"), (answer(REF), "reply paid"),
                               (call("<0.1.0>", REF)[:40], "call ..."), (call("<0.1.0>", REF)[:-4], "call ..."),
                               ("{'$gen_cast',{put,<<1,2", "cast {put,<<1,2"),
                               (f"{{system,{{<0.1.0>,{REF}}},get_state}}", "system get_state"),
                               (f"{{[[alias|{REF}]|{{a}}],{{ok,1}}}}", "reply {ok,1}"),
                               (f"{{{REF}}}", f"{{{REF}}}"), ("hello", "hello")):
            self.assertEqual(expected, readable(text), text)

    def test_both_ends(self) -> None:
        """Both ends of a message match, even if one end has less of its text."""
        ends = steps_of(f"send 1 <5> b {'x' * 100}", f"receive 2 <5> <6> {'x' * 63}")
        self.assertEqual(ends[0].message(), ends[1].message())
