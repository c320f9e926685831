#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): its name, for dl_iterate_phdr */

#include "backends/lttng/find_provider.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue/unused.h"

struct object {
    char *name; /* empty: the program itself */
    uintptr_t start, end;
};

struct objects {
    struct object object[512];
    unsigned count;
};

static int add_object(struct dl_phdr_info *info, DT_UNUSED size_t size, void *data) {
    struct objects *objects = data;
    struct object *object = &objects->object[objects->count];

    if (objects->count == sizeof objects->object / sizeof *objects->object)
        return 1;
    object->name = strdup(info->dlpi_name);
    object->start = UINTPTR_MAX;
    object->end = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = start + info->dlpi_phdr[i].p_memsz;

        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        object->start = start < object->start ? start : object->start;
        object->end = end > object->end ? end : object->end;
    }
    objects->count += object->name != NULL;
    return 0;
}

/* Whether this object itself, not one of its dependencies, defines the provider. */
static bool provides(void *handle, const struct object *object, const char *provider) {
    /* from LTTng-UST 2.13 on, and earlier */
    static const char *const prefixes[] = {"lttng_ust_tracepoint_provider_",
                                           "__tracepoint_provider_"};
    char name[128];

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        uintptr_t symbol;

        (void)snprintf(name, sizeof name, "%s%s", prefixes[i], provider);
        symbol = (uintptr_t)dlsym(handle, name);
        if (symbol >= object->start && symbol < object->end)
            return true;
    }
    return false;
}

/* An object that provides it remains open. */
static void *open_if_provides(const struct object *object, const char *provider) {
    void *handle =
        *object->name ? dlopen(object->name, RTLD_LAZY | RTLD_NOLOAD) : dlopen(NULL, RTLD_LAZY);

    if (handle && !provides(handle, object, provider)) {
        (void)dlclose(handle);
        handle = NULL;
    }
    return handle;
}

bool dt_lttng_find(const char *provider, char *object, size_t size, void **library) {
    struct objects *objects = calloc(1, sizeof *objects);
    void *found = NULL;

    *library = NULL;
    if (!objects)
        return false;
    (void)dl_iterate_phdr(add_object, objects);
    for (unsigned i = 0; i < objects->count; i++) {
        const struct object *candidate = &objects->object[i];

        if (!found && (found = open_if_provides(candidate, provider))) {
            bool is_program = !*candidate->name;

            (void)snprintf(object, size, "%s", is_program ? "the VM itself" : candidate->name);
            /* The program's handle covers all objects that are linked globally. */
            *library = !is_program && dlsym(found, "dt_lttng_provider") ? found : NULL;
        }
        free(candidate->name);
    }
    free(objects);
    return found != NULL;
}
