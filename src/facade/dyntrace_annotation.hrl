%% Guards for the arguments of annotations. `dyntrace' uses them in its function heads, where they are inlined: an
%% annotation whose probe is not enabled costs one NIF call. `dyntrace_annotation' finds the argument that fails them.

-define(IS_TEXT(Text), (is_binary(Text) orelse is_list(Text))).
-define(IS_NAME(Name), (is_atom(Name) orelse ?IS_TEXT(Name))).

%% DT_LAST_LABEL in C.
-define(MAX_LABEL, 950).
-define(IS_LABEL(Label), (is_integer(Label) andalso Label >= 0 andalso Label =< ?MAX_LABEL)).

%% Up to four integers, then up to four other terms.
-define(PLACED(A, B), (is_integer(A) orelse not is_integer(B))).
-define(PLACED(A, B, C), ?PLACED(A, B), ?PLACED(B, C)).
-define(PLACED(A, B, C, D), ?PLACED(A, B, C), ?PLACED(C, D)).
-define(PLACED(A, B, C, D, E), ?PLACED(A, B, C, D), is_integer(A), not is_integer(E)).
-define(PLACED(A, B, C, D, E, F), ?PLACED(A, B, C, D, E), is_integer(B), not is_integer(F)).
-define(PLACED(A, B, C, D, E, F, G), ?PLACED(A, B, C, D, E, F), is_integer(C), not is_integer(G)).
-define(PLACED(A, B, C, D, E, F, G, H), ?PLACED(A, B, C, D, E, F, G), is_integer(D), not is_integer(H)).
