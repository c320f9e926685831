/*
 * The file of a sink: complete, or absent.
 */
#ifndef DT_VIEWER_SHARED_FILE_H
#define DT_VIEWER_SHARED_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

/* The domain of our errors, all with the code 0: only their messages tell. */
#define DT_ERROR g_quark_from_static_string("dyntrace")

/* Writes a file that is complete or absent: beside `path`, which it replaces at the end; of several
 * that are written at a time, the last one that ends stays. "-" is standard output. A device or a
 * pipe is written to as it is. */
struct dt_file;
struct dt_file *dt_file_open(const char *path, GError **error);
void dt_file_write(struct dt_file *file, const void *bytes,
                   size_t size); /* errors are kept for close */
void dt_file_printf(struct dt_file *file, const char *format, ...) G_GNUC_PRINTF(2, 3);
const GError *dt_file_failed(const struct dt_file *file);
bool dt_file_close(struct dt_file *file, GError **error);
/* Writes a text, closes the file and sets the pointer to NULL. */
bool dt_file_finish(struct dt_file **file, const GString *text, GError **error);
void dt_file_discard(struct dt_file *file);

#endif
