%% The records with which programs of osmos (Radford, 2009) tell the formats of their tables, for
%% `dats:open/2'. Functions must be exported ones, `fun Module:Function/Arity': the directory of the
%% table remembers them by these names.

-ifndef(ATS_OSMOS_HRL).
-define(ATS_OSMOS_HRL, true).

-record(osmos_format,
        {to_binary,                     % fun((Term) -> binary())
         from_binary}).                 % fun((binary()) -> Term)

-record(osmos_table_format,
        {block_size,                    % bytes
         key_format,                    % #osmos_format{}
         key_less,                      % fun erlang:'<'/2: keys lie in the order of terms, and are
                                        % kept as terms; or `bytes': in the order of their bytes
         value_format,                  % #osmos_format{}
         merge,                         % fun Module:Name/3
         short_circuit,                 % fun Module:Name/2
         delete}).                      % fun Module:Name/2

-endif.
