#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): dladdr requires it */
#include "page/template.h"

#include <dlfcn.h>
#include <string.h>

/* The placeholder of the data. build.mjs does not replace it. */
static const char place[] = "@DATA@";

static char *beside_the_plugin(const char *name) {
    char *folder, *path;
    Dl_info of;

    if (!dladdr(place, &of) || !of.dli_fname)
        return g_strdup(name);
    folder = g_path_get_dirname(of.dli_fname);
    path = g_build_filename(folder, name, NULL);
    g_free(folder);
    return path;
}

char *dt_page_template_read(GError **error) {
    char *path = beside_the_plugin("page.html"), *text = NULL;

    if (g_file_get_contents(path, &text, NULL, error)) {
        if (!strstr(text, place)) {
            g_set_error(error, DT_ERROR, 0, "%s has no place for data: %s", path, place);
            g_clear_pointer(&text, g_free);
        }
    }
    g_free(path);
    return text;
}

void dt_page_template_fill(const char *text, const GString *json, struct dt_file *to) {
    const char *at = strstr(text, place);

    dt_file_write(to, text, (size_t)(at - text));
    dt_file_write(to, json->str, json->len);
    at += strlen(place);
    dt_file_write(to, at, strlen(at));
}
