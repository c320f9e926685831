/*
 * The output file of a sink, which appears only when it is complete.
 */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

/* The domain of our errors. Their code is always 0; only the messages differ. */
#define DT_ERROR g_quark_from_static_string("dyntrace")

/* Writes to a temporary file in the folder of `path` and renames it to `path` on close. If several
 * writers use one path, the last to close wins. "-" is standard output. Devices and pipes are
 * written to directly. */
struct dt_file;
struct dt_file *dt_file_open(const char *path, GError **error);
void dt_file_write(struct dt_file *file, const void *bytes, size_t size); /* close reports errors */
void dt_file_printf(struct dt_file *file, const char *format, ...) G_GNUC_PRINTF(2, 3);
const GError *dt_file_failed(const struct dt_file *file);
/* The width of the terminal, if the file is one; else 0. */
long dt_file_width(const struct dt_file *file);
bool dt_file_close(struct dt_file *file, GError **error);
/* Writes a text, closes the file and sets the pointer to NULL. */
bool dt_file_finish(struct dt_file **file, const GString *text, GError **error);
void dt_file_discard(struct dt_file *file);
