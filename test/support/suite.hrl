%% What every suite needs: configurations, assertions, and all functions exported, because Common Test and nodes call
%% them by name.
-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).
