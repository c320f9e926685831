#include "shared/amounts.h"

#include <stdbool.h>

#include <glib.h>

struct unit {
    double one;
    const char *name;
};

/* Three digits in the first (largest) unit of which there is at least one. */
static bool show(struct dt_amount *to, double number, const struct unit units[3]) {
    for (size_t i = 0; i < 3; i++) {
        double value = number / units[i].one;

        /* 999.7 µs would be rounded to 1000 µs. */
        if (value < 0.9995)
            continue;
        int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
        g_snprintf(to->text, sizeof to->text, "%.*f %s", decimals, value, units[i].name);
        return true;
    }
    return false;
}

struct dt_amount dt_show_ns(int64_t ns) {
    static const struct unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "\u00b5s"}};
    struct dt_amount amount = {""};

    if (ns == DT_NO_VALUE || ns == 0)
        g_strlcpy(amount.text, ns ? "" : "0", sizeof amount.text);
    else if (!show(&amount, (double)ns, units))
        g_snprintf(amount.text, sizeof amount.text, "%" PRId64 " ns", ns);
    return amount;
}

struct dt_amount dt_show_bytes(uint64_t bytes) {
    static const struct unit units[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
    struct dt_amount amount = {""};

    if (!show(&amount, (double)bytes, units))
        g_snprintf(amount.text, sizeof amount.text, "%" PRIu64 " B", bytes);
    return amount;
}

struct dt_amount dt_show_share(double share) {
    struct dt_amount amount = {""};

    if (share < 1 && share > 0.995)
        g_strlcpy(amount.text, "over 99 %", sizeof amount.text);
    else
        g_snprintf(amount.text, sizeof amount.text, "%.0f %%", share * 100);
    return amount;
}

char *dt_show_clock(const struct dt_clock *clock) {
    if (!clock)
        return g_strdup("");
    if (clock->known == DT_CLOCK_REFERENCE)
        return g_strdup("reference");
    if (clock->known == DT_CLOCK_RECORDED)
        return g_strdup("as recorded");
    struct dt_amount offset = dt_show_ns(ABS(clock->offset));
    const char *sign = clock->offset < 0 ? "-" : "+";
    if (clock->known != DT_CLOCK_BOTH_WAYS)
        return g_strdup_printf("%s%s, %s", sign, offset.text, dt_clock_words[clock->known]);
    return g_strdup_printf("%s%s \u00b1 %s", sign, offset.text,
                           dt_show_ns(clock->uncertainty).text);
}
