%% @private @doc Transactions of tables on disk, as {@link dats:transact/4} and {@link
%% dats:update/3} call them.
-module(ats_disk_transactions).

-export([run/4, update/3]).

-spec run(ats:tid(), [ats:condition()], [ats:step()], [ats:step()]) -> {boolean(), [term()]}.
run(Table, Conditions, Then, Else) ->
    ats_transactions:done(ats_merge_access:change(Table, transact, [Conditions, Then, Else])).

-spec update(ats:tid(), Key, fun((Before) -> After)) -> After
              when Key :: term(), Before :: [tuple()], After :: [tuple()].
update(Table, Key, Function) ->
    ats_transactions:update(Table,
                            fun() ->
                                    {Type, KeyPos, _Fixed} = ats_nif:disk_kind(Table),
                                    {Type, KeyPos}
                            end, Key, Function,
                            fun() -> ats_merge_access:lookup(Table, Key) end,
                            fun(Before, After) ->
                                    {Held, _} = run(Table, [condition(Key, Before)],
                                                    steps(Key, After), []),
                                    Held
                            end).

condition(Key, []) -> {absent, Key};
condition(_Key, [Object]) -> {equals, Object}.

steps(Key, []) -> [{delete, Key}];
steps(_Key, [Object]) -> [{insert, Object}].
