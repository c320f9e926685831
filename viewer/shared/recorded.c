#include "shared/recorded.h"

const char *const dt_probe_names[DT_PROBES] = {
#define PROBE(name, ...) #name,
#include "catalogue/probes.def"
};

const char *const dt_clock_words[] = {
    [DT_CLOCK_RECORDED] = "recorded",   [DT_CLOCK_REFERENCE] = "reference",
    [DT_CLOCK_BOTH_WAYS] = "both ways", [DT_CLOCK_ONE_WAY] = "one way",
    [DT_CLOCK_APART] = "apart",
};
