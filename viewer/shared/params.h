/*
 * The parameters of a sink: the text of --params, checked by the sink's table.
 */
#ifndef DT_VIEWER_SHARED_PARAMS_H
#define DT_VIEWER_SHARED_PARAMS_H

#include <babeltrace2/babeltrace.h>

#include "shared/sink.h"

/* The values in the order of the table, or NULL with an error that names the parameter. Strings
   are those of `given`, or of the table. `given` may have those of another table, too. */
union dt_value *dt_params_read(const struct dt_param *table, const struct dt_param *also,
                               const bt_value *given, GError **error);

/* The tables for people; to be freed by g_free. */
char *dt_params_help(const struct dt_param *table, const struct dt_param *also);

#endif
