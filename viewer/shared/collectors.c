#include "shared/collectors.h"

#define MODEL_EVENT(name, declared, passed)                                                        \
    static void name declared {                                                                    \
        const struct dt_collectors *all = data;                                                    \
                                                                                                   \
        for (unsigned n = 0; all->of[n].sink; n++) {                                               \
            data = all->of[n].data;                                                                \
            if (all->of[n].sink->name)                                                             \
                all->of[n].sink->name passed;                                                      \
        }                                                                                          \
    }
#include "shared/model_events.def"

const struct dt_sink dt_collect_all = {
#define MODEL_EVENT(name, declared, passed) .name = name,
#include "shared/model_events.def"
};
