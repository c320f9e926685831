#include "shared/nothing.h"

#include <glib.h>

void dt_nothing(const char *why) {
    g_printerr("dyntrace: nothing to show: %s\n", why);
}
