%% The conversions of terms that the native library makes, one by one. The functions are those
%% of `crates/ats-nif/src/test_nifs.rs', in a build of their own; see ats_term_SUITE.
-module(ats_term_nif).

-export([
    known_layouts/0,
    roundtrip/1,
    order_key/1,
    exact_key/1,
    image_store/1,
    image_fetch/1,
    image_same/2,
    image_keys/1,
    make_opaque/1,
    panic/0,
    on_thread/2
]).

-on_load(load/0).

load() ->
    erlang:load_nif(os:getenv("ATS_TERM_NIF", "ats_term_nif"), 0).

%% Returns `true' for local identifiers, for references, and for integers beyond 64 bits, if the
%% fast way to read them is in use.
-spec known_layouts() ->
    {Pids :: boolean(), References :: boolean(), Integers :: boolean(), Others :: boolean()}.
known_layouts() -> erlang:nif_error(not_loaded).

%% Through an image and back.
-spec roundtrip(term()) -> term().
roundtrip(_Term) -> erlang:nif_error(not_loaded).

-spec order_key(term()) -> binary().
order_key(_Term) -> erlang:nif_error(not_loaded).

-spec exact_key(term()) -> binary().
exact_key(_Term) -> erlang:nif_error(not_loaded).

%% Keeps the image of a tuple as long as the reference.
-spec image_store(tuple()) -> reference().
image_store(_Tuple) -> erlang:nif_error(not_loaded).

-spec image_fetch(reference()) -> tuple().
image_fetch(_Image) -> erlang:nif_error(not_loaded).

-spec image_same(reference(), reference()) -> boolean().
image_same(_Image1, _Image2) -> erlang:nif_error(not_loaded).

%% Order key and exact key, made from the image.
-spec image_keys(reference()) -> {binary(), binary()}.
image_keys(_Image) -> erlang:nif_error(not_loaded).

%% Has the library take this float for a term of a kind that it does not know, or no term any more.
-spec make_opaque(float() | none) -> true.
make_opaque(_Float) -> erlang:nif_error(not_loaded).

-spec panic() -> no_return().
panic() -> erlang:nif_error(not_loaded).

%% Reschedules itself to a dirty scheduler for CPU (2) or I/O (3), and there `Times' times again.
-spec on_thread(2 | 3, non_neg_integer()) -> 2 | 3.
on_thread(_Type, _Times) -> erlang:nif_error(not_loaded).
