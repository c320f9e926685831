/*
 * Selects by a probe's set of backends, while the catalogue is expanded.
 *
 *     #define ON_usdt , 1,
 *     #define PROBE(name, provider, backends, ...) DT_CHOOSE(SITE, NO_SITE, backends)(name)
 *     #include "catalogue/probes.def"
 *     #undef ON_usdt
 *
 * expands to SITE(name) for a probe that has ON(usdt) among its backends, and to NO_SITE(name) for
 * any other. ON(usdt) expands to ON_usdt, so only the selected backend adds an argument with a 1 to
 * the set; the names of other backends remain unexpanded.
 */
#ifndef DT_CATALOGUE_CHOOSE_H
#define DT_CATALOGUE_CHOOSE_H

#define DT_CHOOSE(with, without, ...)                                                              \
    DT_CHOOSE_IF(with, without, DT_CHOOSE_SECOND(~__VA_ARGS__, 0, ~))
#define DT_CHOOSE_SECOND(...) DT_CHOOSE_SECOND_OF(__VA_ARGS__)
#define DT_CHOOSE_SECOND_OF(first, second, ...) second
#define DT_CHOOSE_IF(with, without, is) DT_CHOOSE_JOIN(DT_CHOOSE_, is)(with, without)
#define DT_CHOOSE_JOIN(a, b) DT_CHOOSE_PASTE(a, b)
#define DT_CHOOSE_PASTE(a, b) a##b
#define DT_CHOOSE_1(with, without) with
#define DT_CHOOSE_0(with, without) without

/* The same for the probes of one provider: DT_CHOOSE_OF(SITE, NO_SITE, provider, backends) expands
   to SITE if, in addition, OF_<provider> is defined as , 1, */
#define DT_CHOOSE_OF(with, without, provider, ...)                                                 \
    DT_CHOOSE(DT_CHOOSE(with, without, OF_##provider), without, __VA_ARGS__)

/* For probes that are not in the selected backend. */
#define DT_NOTHING(...)

#endif
