#define DT_LTTNG_PROVIDER org_erlang_otp
#define OF_org_erlang_otp , 1,
#include "backends/lttng/provider.h"
