/* The provider org_erlang_otp: dyntrace_lttng_otp.so. */
#define DT_LTTNG_PROVIDER org_erlang_otp
#define OF_org_erlang_otp , 1,
#include "backends/lttng/provider.h"
