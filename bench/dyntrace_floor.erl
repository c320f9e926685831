%% A tracer that does nothing (state `trace') or returns `discard' (state `discard'), and an empty NIF.
-module(dyntrace_floor).

-export([load/1, enabled/3, trace/5, nif/4]).

-nifs([enabled/3, trace/5, nif/4]).

load(Library) -> erlang:load_nif(Library, 0).

enabled(_, _, _) -> erlang:nif_error(not_loaded).
trace(_, _, _, _, _) -> erlang:nif_error(not_loaded).
nif(_, _, _, _) -> erlang:nif_error(not_loaded).
