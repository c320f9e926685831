#include "viewer/report_parts.h"

struct unit {
    double one;
    const char *name;
};

/* With three digits, by the first unit that there is one of. */
static bool show(char *to, size_t size, double number, const struct unit units[3]) {
    for (size_t i = 0; i < 3; i++) {
        double value = number / units[i].one;
        /* 999.7 µs would be shown as 1000 µs. */
        if (value < 0.9995)
            continue;
        int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
        g_snprintf(to, size, "%.*f %s", decimals, value, units[i].name);
        return true;
    }
    return false;
}

void dt_show_ns(char *to, size_t size, int64_t ns) {
    static const struct unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "\u00b5s"}};
    if (ns == DT_NO_VALUE || ns == 0)
        g_strlcpy(to, ns ? "" : "0", size);
    else if (!show(to, size, (double)ns, units))
        g_snprintf(to, size, "%" G_GINT64_FORMAT " ns", ns);
}

char *dt_show_clock(const struct dt_clock *clock) {
    if (!clock)
        return g_strdup("");
    if (clock->known == DT_CLOCK_REFERENCE)
        return g_strdup("reference");
    if (clock->known == DT_CLOCK_RECORDED)
        return g_strdup("as recorded");
    char offset[32], uncertainty[32];
    const char *sign = clock->offset < 0 ? "-" : "+";
    dt_show_ns(offset, sizeof offset, ABS(clock->offset));
    if (clock->known != DT_CLOCK_BOTH_WAYS)
        return g_strdup_printf("%s%s, %s", sign, offset, dt_clock_words[clock->known]);
    dt_show_ns(uncertainty, sizeof uncertainty, clock->uncertainty);
    return g_strdup_printf("%s%s \u00b1 %s", sign, offset, uncertainty);
}

void dt_show_bytes(char *to, size_t size, uint64_t bytes) {
    static const struct unit units[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
    if (!show(to, size, (double)bytes, units))
        g_snprintf(to, size, "%" G_GUINT64_FORMAT " B", bytes);
}

bool dt_report_has_nodes(const struct dt_report *r) {
    guint n = 0;
    for (guint i = 0; i < r->nodes->len; i++)
        n += g_ptr_array_index(r->nodes, i) != NULL;
    return n > 1;
}

char *dt_show_where(const struct dt_report *r, const struct dt_who *who) {
    if (!who || !who->node || !dt_report_has_nodes(r))
        return dt_show_who(who);
    g_autofree char *shown = dt_show_who(who);
    return g_strdup_printf("%s of %s", shown, who->node->name);
}

/* The pid first, so that a process can be found by it: "<0.90.0> shop_db". */
char *dt_show_who(const struct dt_who *who) {
    if (!who || who->is_sum || !who->pid)
        return g_strdup(dt_who_show(who));
    const char *other = *who->name ? who->name : *who->label ? who->label : who->initial;
    return *other ? g_strdup_printf("%s %s", who->pid, other) : g_strdup(who->pid);
}
