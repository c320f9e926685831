#include "viewer/recorded.h"

const char *const dt_probe_names[DT_PROBES] = {
#define PROBE(name, ...) #name,
#include "catalogue/probes.def"
};
