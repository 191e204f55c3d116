%% A bank: two writers move money between accounts, each time by one list of two objects, and every
%% query finds all of the money. In tables of every type, in memory and on disk, beside each other.
%%
%% An account of a set is an object, which a transfer replaces. Of a bag it is a key, and a transfer
%% adds an object to each of two keys; now and then one writer clears the bag and opens the accounts
%% again by one list, so that a query finds all of the money or none.
%%
%% ATS_SOAK_SECONDS says how long (a few seconds by default).
-module(ats_bank_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([every_query_finds_all_money/1]).

-define(DEFAULT_SECONDS, "12").
-define(TYPES, [set, ordered_set, bag, duplicate_bag, ordered_bag, ordered_duplicate_bag]).
-define(ACCOUNTS, 500).
-define(EACH, 100).
%% Transfers between two times that a bag is cleared.
-define(LONGEST, 3000).

suite() -> [{timetrap, {seconds, 900 + 2 * seconds()}}].

all() -> [every_query_finds_all_money].

seconds() -> list_to_integer(os:getenv("ATS_SOAK_SECONDS", ?DEFAULT_SECONDS)).

init_per_testcase(Case, Config) ->
    {ok, _} = application:ensure_all_started(ats),
    ats_disk_lib:begin_case(Case, Config).

end_per_testcase(_, _) -> ats_disk_lib:end_case().

every_query_finds_all_money(Config) ->
    Deadline = erlang:monotonic_time(second) + seconds(),
    Banks = [{Module, Type, open(Config, Module, Type)}
             || Module <- [ats, dats], Type <- ?TYPES],
    [opens(Module, Table) || {Module, _, Table} <- Banks],
    Roles = [{Bank, Role} || Bank <- Banks, Role <- [{writer, 0}, {writer, 1}, reader]],
    Done = ats_test_lib:parallel([fun() -> work(Bank, Role, Deadline) end
                                  || {Bank, Role} <- Roles]),
    Count = fun(Wanted) ->
                    [{Module, Type, lists:sum([N || {{B, Role}, N} <- lists:zip(Roles, Done),
                                                    B =:= Bank, Wanted(Role)])}
                     || {Module, Type, _} = Bank <- Banks]
            end,
    Queries = Count(fun(Role) -> Role =:= reader end),
    Transfers = Count(fun(Role) -> Role =/= reader end),
    ct:pal("queries ~p~ntransfers ~p", [Queries, Transfers]),
    [?assert(N > 0, Bank) || {_, _, N} = Bank <- Queries ++ Transfers],
    [true = ats:delete(Table) || {ats, _, Table} <- Banks],
    Sum = fun(Counted) -> lists:sum([N || {_, _, N} <- Counted]) end,
    {comment, io_lib:format("~b queries, ~b transfers", [Sum(Queries), Sum(Transfers)])}.

open(_Config, ats, Type) ->
    ats:new(bank, [Type, public]);
open(Config, dats, Type) ->
    ats_disk_lib:open(Config, Type, [{type, Type}, {memory, 8 bsl 20}]).

is_set(Type) -> Type =:= set orelse Type =:= ordered_set.

%% Accounts are objects {Account, Money, Transfer}.
opens(Module, Table) ->
    is_done(Module:insert(Table, [{A, ?EACH, opened} || A <- lists:seq(1, ?ACCOUNTS)])).

is_done(true) -> ok;
is_done(ok) -> ok.

work({Module, Type, Table}, {writer, Odd}, Deadline) ->
    case is_set(Type) of
        true -> repeat(Deadline, fun(_) -> replace(Module, Table, Odd) end);
        false -> repeat(Deadline, fun(N) -> add(Module, Table, Odd, N) end)
    end;
work({Module, Type, Table}, reader, Deadline) ->
    Queries = queries(Module),
    Ask = fun(N) ->
                  {Name, Query} = element(1 + N rem tuple_size(Queries), Queries),
                  ?assert(is_right(Type, Query(Table)), {Module, Type, Name})
          end,
    repeat(Deadline, Ask).

repeat(Deadline, Do) -> repeat(Deadline, Do, 0).

repeat(Deadline, Do, N) ->
    _ = Do(N),
    case N rem 16 =:= 0 andalso erlang:monotonic_time(second) >= Deadline of
        true -> N + 1;
        false -> repeat(Deadline, Do, N + 1)
    end.

%% The writers have accounts of their own, so each reads its own writes.
replace(Module, Table, Odd) ->
    {From, To} = two_accounts(Odd),
    [{_, A, _}] = Module:lookup(Table, From),
    [{_, B, _}] = Module:lookup(Table, To),
    By = rand:uniform(9),
    is_done(Module:insert(Table, [{From, A - By, moved}, {To, B + By, moved}])).

add(Module, Table, Odd, N) ->
    case Odd =:= 0 andalso N rem ?LONGEST =:= ?LONGEST - 1 of
        true ->
            is_done(Module:delete_all_objects(Table)),
            opens(Module, Table);
        false ->
            {From, To} = two_accounts(Odd),
            By = rand:uniform(9),
            is_done(Module:insert(Table, [{From, -By, {Odd, N}}, {To, By, {Odd, N}}]))
    end.

two_accounts(Odd) ->
    Half = ?ACCOUNTS div 2,
    From = rand:uniform(Half),
    To = 1 + (From + rand:uniform(Half - 1) - 1) rem Half,
    {2 * From - Odd, 2 * To - Odd}.

is_right(Type, Money) ->
    Money =:= ?ACCOUNTS * ?EACH orelse Money =:= 0 andalso not is_set(Type).

-define(MONEY, [{{'_', '$1', '_'}, [], ['$1']}]).

%% Chunks of a table on disk are moments of their own each, those of its snapshots are not.
queries(Module) ->
    Add = fun({_, Money, _}, Sum) -> Sum + Money end,
    All = [{tab2list, fun(T) -> lists:sum([Money || {_, Money, _} <- Module:tab2list(T)]) end},
           {select, fun(T) -> lists:sum(Module:select(T, ?MONEY)) end},
           {foldl, fun(T) -> Module:foldl(Add, 0, T) end},
           {foldr, fun(T) -> Module:foldr(Add, 0, T) end},
           {snapshot, fun(T) -> snapshot(Module, T) end}],
    Chunks = [{chunks, fun(T) -> chunks(Module, Module:select(T, ?MONEY, 70)) end}
              || Module =:= ats],
    list_to_tuple(All ++ Chunks).

snapshot(Module, T) ->
    S = Module:snapshot(T),
    Money = lists:sum(Module:select(S, ?MONEY)),
    ?assertEqual(Money, chunks(Module, Module:select(S, ?MONEY, 70))),
    is_done(Module:release(S)),
    Money.

chunks(_Module, '$end_of_table') -> 0;
chunks(Module, {Chunk, Continuation}) ->
    lists:sum(Chunk) + chunks(Module, Module:select(Continuation)).
