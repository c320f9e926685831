#include "summary/findings/limits.h"

const struct dt_limits dt_limits = {
#define LIMIT(name, number, unit, meaning) .name = (number)*DT_UNIT_##unit,
#define RULE(name, about, severity, looks_at, limits, why, next) .name = {limits},
#include "summary/findings/rules.def"
};
