"""`dyntrace mcp`: a server of the Model Context Protocol, on standard input and output.

A message is a line of JSON. Only one tool runs at a time, which bounds the load on the host. The server keeps
reading messages meanwhile, so a tool can be cancelled.
"""
import argparse
import json
import os
import select
import sys
from typing import Any, Callable, Dict, List, Optional, Set

from dyntrace_command.common.terminal import say
from dyntrace_command.host.tools import own_version
from dyntrace_command.mcp.tools import TOOLS, call, descriptions

# The versions of the protocol, the latest first.
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
# Maximum size of a message in bytes, and maximum number of queued calls.
MESSAGE_MOST, CALLS_MOST = 1 << 20, 20
# Pieces that are read before a running tool is checked again: a client may send without pause.
PIECES_MOST = 16
# The errors of JSON-RPC.
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, BUSY = -32700, -32600, -32601, -32602, -32000

INSTRUCTIONS = "Tools that look at the Erlang and Elixir nodes of this host. Start with `nodes`. `report` has " \
    "findings with next steps; `stacks` works on a node that hangs; `stacks` and `profile` need no preparation of " \
    "the node, `top`, `report` and `request` need dyntrace in it. Each error names the next step; a person may " \
    "have to take it."

Message = Dict[str, Any]


def serve(options: argparse.Namespace) -> None:  # pylint: disable=unused-argument
    """Serves until the end of standard input."""
    if os.isatty(0):
        say("dyntrace: an assistant starts this command and sends messages on standard input: see docs/mcp.md")
    Server().serve()


class Server:
    """The messages that have arrived, and the calls that wait."""

    def __init__(self) -> None:
        self.partial_line = b""
        self.is_over = self.is_skipping = False
        self.calls: List[Message] = []
        self.cancelled: Set[Any] = set()

    def serve(self) -> None:
        """Answers messages, and runs one call after the other."""
        while not self.is_over:
            while self.calls and not self.is_over:
                self.run(self.calls[0])
                self.cancelled.discard(self.calls.pop(0)["id"])
            self.read(None)

    # Messages

    def read(self, seconds: Optional[float]) -> None:
        """Reads what arrives within this time, and takes the messages. A line that is too long is skipped."""
        pieces = 0
        while not self.is_over and pieces < PIECES_MOST and select.select([0], [], [], seconds)[0]:
            pieces += 1
            data = os.read(0, 1 << 16)
            self.is_over = not data
            *lines, self.partial_line = (self.partial_line + data).split(b"\n")
            for line in lines:
                if not self.is_skipping and line.strip():
                    self.take(line)
                self.is_skipping = False
            if len(self.partial_line) > MESSAGE_MOST:
                if not self.is_skipping:
                    self.refuse(None, INVALID_REQUEST, f"the message has more than {MESSAGE_MOST} bytes")
                self.partial_line, self.is_skipping = b"", True
            seconds = 0

    def take(self, line: bytes) -> None:
        """Takes a message."""
        try:
            message = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            self.refuse(None, PARSE_ERROR, "not JSON")
            return
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            # The server sends no requests, so it ignores responses.
            if not isinstance(message, dict) or "id" not in message or not {"result", "error"} & set(message):
                self.refuse(None, INVALID_REQUEST, "not a request")
            return
        name, params = message["method"], message.get("params") or {}
        if not isinstance(params, dict):
            params = {}
        if "id" not in message:
            if name == "notifications/cancelled":
                self.cancelled.update(one["id"] for one in self.calls if one["id"] == params.get("requestId"))
        elif not isinstance(message["id"], (str, int)):
            self.refuse(None, INVALID_REQUEST, "the id must be a string or an integer")
        elif name in self.METHODS:
            self.METHODS[name](self, message["id"], params)
        else:
            self.refuse(message["id"], NO_METHOD, f"no such method: {name[:100]}")

    @staticmethod
    def send(message: Message) -> None:
        """Sends a message."""
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def answer(self, request_id: Any, result: Dict[str, Any]) -> None:
        """Answers a request."""
        self.send({"id": request_id, "result": result})

    def refuse(self, request_id: Any, code: int, text: str) -> None:
        """Answers a request with an error."""
        self.send({"id": request_id, "error": {"code": code, "message": text}})

    # Requests

    def initialize(self, request_id: Any, params: Dict[str, Any]) -> None:
        """The client's version of the protocol is used if the server has it."""
        wanted = params.get("protocolVersion")
        self.answer(request_id, {"protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
                             "capabilities": {"tools": {}}, "instructions": INSTRUCTIONS,
                             "serverInfo": {"name": "dyntrace", "version": own_version()}})

    def ping(self, request_id: Any, _: Dict[str, Any]) -> None:
        """Answers a ping."""
        self.answer(request_id, {})

    def list_tools(self, request_id: Any, _: Dict[str, Any]) -> None:
        """All tools, at once."""
        self.answer(request_id, {"tools": descriptions()})

    def call_tool(self, request_id: Any, params: Dict[str, Any]) -> None:
        """Adds the call to those that wait."""
        name = params.get("name")
        if not isinstance(name, str) or name not in TOOLS:
            self.refuse(request_id, INVALID_PARAMS, f"no such tool: {str(name)[:100]}")
        elif len(self.calls) >= CALLS_MOST:
            self.refuse(request_id, BUSY, f"too many calls are queued ({CALLS_MOST}); retry later")
        else:
            self.calls.append({**params, "id": request_id})

    METHODS: "Dict[str, Callable[[Server, Any, Dict[str, Any]], None]]" = {
        "initialize": initialize, "ping": ping, "tools/list": list_tools, "tools/call": call_tool}

    def run(self, one: Message) -> None:
        """Runs a call. One that was cancelled has no answer."""
        def is_cancelled() -> bool:
            self.read(0)
            return self.is_over or one["id"] in self.cancelled
        if is_cancelled():
            return
        result = call(TOOLS[one["name"]], one.get("arguments") or {}, is_cancelled)
        if not is_cancelled():
            self.answer(one["id"], result)
