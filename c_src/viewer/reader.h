/*
 * Messages of babeltrace2 as recorded events, for the model.
 */
#ifndef DT_VIEWER_READER_H
#define DT_VIEWER_READER_H

#include <babeltrace2/babeltrace.h>

#include "viewer/model.h"

struct dt_reader;

struct dt_reader *dt_reader_new(struct dt_model *model);
void dt_reader_message(struct dt_reader *reader, const bt_message *message);
void dt_reader_free(struct dt_reader *reader);

#endif
