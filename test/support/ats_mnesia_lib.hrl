%% Objects of the tables that tests of Mnesia make.
-record(person, {key, value, more}).
