/*
 * The parameters of a sink: the values of --params, checked against the sink's table.
 */
#pragma once

#include <babeltrace2/babeltrace.h>

#include "shared/sink.h"

/* Returns the values in the order of the table, or NULL with an error that names the parameter.
   Strings belong to `given` or to the table. `given` may also have the parameters of `also`. */
union dt_value *dt_params_read(const struct dt_param *table, const struct dt_param *also,
                               const bt_value *given, GError **error);

/* The help text for both tables; to be freed by g_free. */
char *dt_params_help(const struct dt_param *table, const struct dt_param *also);
