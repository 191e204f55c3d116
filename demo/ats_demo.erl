%% @doc The demonstration behind `make demo': ats at work beside ets.
%%
%% First both hold the Unicode Character Database and answer the same questions about it; then
%% several processes fill one ordered table at the same time, and read it. Last, tables on disk
%% outlive a virtual machine that is killed.
-module(ats_demo).

-export([main/1]).

-spec main([string()]) -> no_return().
main([Kind, DataFile]) ->
    ok = ats_demo_terminal:init(kind(Kind)),
    Start = erlang:monotonic_time(microsecond),
    introduce(),
    {Equal, Characters} = unicode(DataFile),
    ok = ats_demo_disjoint:run(),
    Kept = ats_demo_disk:run(DataFile, Characters),
    ats_demo_terminal:line("~nThe whole demonstration took ~ts.",
                           [ats_demo_terminal:seconds(
                              erlang:monotonic_time(microsecond) - Start)]),
    case {Equal, Kept} of
        {true, true} -> halt(0);
        {false, _} -> ats_demo_terminal:line("ats and ets did NOT agree; see above.", []), halt(1);
        {true, false} ->
            ats_demo_terminal:line("Something was lost on disk; see above.", []),
            halt(1)
    end.

-spec kind(string()) -> terminal | plain.
kind("terminal") -> terminal;
kind("plain") -> plain.

-spec introduce() -> ok.
introduce() ->
    ats_demo_terminal:heading("Adaptive Term Storage"),
    ats_demo_terminal:line(
      "Tables of Erlang terms, used exactly like ets. Everything below is done twice,~n"
      "once with ats and once with ets, by the same code, on this machine:~n"
      "Erlang/OTP ~ts, ~b schedulers. On two cores this takes less than a minute.",
      [erlang:system_info(otp_release), erlang:system_info(schedulers_online)]).

-spec unicode(file:filename()) -> {boolean(), [ats_demo_unicode:character()]}.
unicode(DataFile) ->
    ats_demo_terminal:heading("1. The Unicode Character Database in six tables"),
    {Characters, _} =
        ats_demo_terminal:progress("reading UnicodeData.txt", 1,
                                   fun(_) -> ats_demo_unicode:read(DataFile) end),
    {[AtsTables, EtsTables], _} =
        ats_demo_terminal:progress("loading into ats and into ets", 2 * length(Characters),
                                   fun(Report) -> load([ats, ets], Characters, 0, Report) end),
    Objects = lists:sum([ats:info(Table, size) || Table <- maps:values(AtsTables)]),
    ats_demo_terminal:line("  ~ts objects each", [ats_demo_terminal:count(Objects)]),
    ats_demo_terminal:heading("2. Questions"),
    Equal = ats_demo_questions:ask_all(AtsTables, EtsTables),
    lists:foreach(fun ats:delete/1, maps:values(AtsTables)),
    lists:foreach(fun ets:delete/1, maps:values(EtsTables)),
    {Equal, Characters}.

-spec load([ats | ets], [ats_demo_unicode:character()], Done :: non_neg_integer(),
           fun((non_neg_integer()) -> ok)) -> [ats_demo_questions:tables()].
load([], _Characters, _Done, _Report) ->
    [];
load([Module | Modules], Characters, Done, Report) ->
    Tables = ats_demo_questions:load(Module, Characters, fun(More) -> Report(Done + More) end),
    [Tables | load(Modules, Characters, Done + length(Characters), Report)].
