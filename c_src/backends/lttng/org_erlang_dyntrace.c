/* The provider org_erlang_dyntrace: dyntrace_lttng.so. */
#define DT_LTTNG_PROVIDER org_erlang_dyntrace
#define OF_org_erlang_dyntrace , 1,
#include "backends/lttng/provider.h"
