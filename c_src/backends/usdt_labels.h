/*
 * EACH_LABEL(M, ...): M(0, ...) to M(DT_LAST_LABEL, ...), for the USDT probes of a labeled probe.
 *
 * EACH_OF_ROW(M, ...): M(, ...), then M(1, ...) to M(DT_LAST_OF_ROW, ...), for those of a probe
 * array. M's argument is the suffix of the name; followed by + 0, it is the index.
 */
#ifndef DT_BACKENDS_USDT_LABELS_H
#define DT_BACKENDS_USDT_LABELS_H

/* clang-format off */
/* TEN(M, 4, …) is M(40, …) to M(49, …). */
#define TEN(M, n, ...)                                                                             \
    M(n##0, __VA_ARGS__) M(n##1, __VA_ARGS__) M(n##2, __VA_ARGS__) M(n##3, __VA_ARGS__)            \
    M(n##4, __VA_ARGS__) M(n##5, __VA_ARGS__) M(n##6, __VA_ARGS__) M(n##7, __VA_ARGS__)            \
    M(n##8, __VA_ARGS__) M(n##9, __VA_ARGS__)
#define HUNDRED(M, n, ...)                                                                         \
    TEN(M, n##0, __VA_ARGS__) TEN(M, n##1, __VA_ARGS__) TEN(M, n##2, __VA_ARGS__)                  \
    TEN(M, n##3, __VA_ARGS__) TEN(M, n##4, __VA_ARGS__) TEN(M, n##5, __VA_ARGS__)                  \
    TEN(M, n##6, __VA_ARGS__) TEN(M, n##7, __VA_ARGS__) TEN(M, n##8, __VA_ARGS__)                  \
    TEN(M, n##9, __VA_ARGS__)
#define EACH_LABEL(M, ...)                                                                         \
    M(0, __VA_ARGS__) M(1, __VA_ARGS__) M(2, __VA_ARGS__)                                          \
    M(3, __VA_ARGS__) M(4, __VA_ARGS__) M(5, __VA_ARGS__)                                          \
    M(6, __VA_ARGS__) M(7, __VA_ARGS__) M(8, __VA_ARGS__)                                          \
    M(9, __VA_ARGS__) TEN(M, 1, __VA_ARGS__) TEN(M, 2, __VA_ARGS__)                                \
    TEN(M, 3, __VA_ARGS__) TEN(M, 4, __VA_ARGS__) TEN(M, 5, __VA_ARGS__)                           \
    TEN(M, 6, __VA_ARGS__) TEN(M, 7, __VA_ARGS__) TEN(M, 8, __VA_ARGS__)                           \
    TEN(M, 9, __VA_ARGS__) HUNDRED(M, 1, __VA_ARGS__) HUNDRED(M, 2, __VA_ARGS__)                   \
    HUNDRED(M, 3, __VA_ARGS__) HUNDRED(M, 4, __VA_ARGS__) HUNDRED(M, 5, __VA_ARGS__)               \
    HUNDRED(M, 6, __VA_ARGS__) HUNDRED(M, 7, __VA_ARGS__) HUNDRED(M, 8, __VA_ARGS__)               \
    TEN(M, 90, __VA_ARGS__) TEN(M, 91, __VA_ARGS__) TEN(M, 92, __VA_ARGS__)                        \
    TEN(M, 93, __VA_ARGS__) TEN(M, 94, __VA_ARGS__) M(950, __VA_ARGS__)
#define EACH_OF_ROW(M, ...)                                                                        \
    M(, __VA_ARGS__) M(1, __VA_ARGS__) M(2, __VA_ARGS__)                                           \
    M(3, __VA_ARGS__) M(4, __VA_ARGS__) M(5, __VA_ARGS__)                                          \
    M(6, __VA_ARGS__) M(7, __VA_ARGS__) M(8, __VA_ARGS__)                                          \
    M(9, __VA_ARGS__) TEN(M, 1, __VA_ARGS__) TEN(M, 2, __VA_ARGS__)
/* clang-format on */

#endif
