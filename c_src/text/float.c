/*
 * Floats as the %e of the C library writes them, but faster: on x86-64 the C library takes several
 * times as long, because it computes all digits exactly.
 */
#include "text/float.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "catalogue/unused.h"
#include "text/put.h"

#if LDBL_MANT_DIG >= 64 && LDBL_MAX_10_EXP > 400

enum { DIGITS = 7, LEAST = 1000000 };

/* 10 to the power of 1, 2, 4 and so on: their products exceed the range of doubles. */
static const long double powers[] = {1e1L, 1e2L, 1e4L, 1e8L, 1e16L, 1e32L, 1e64L, 1e128L, 1e256L};

static long double power_of_ten(unsigned n) {
    long double power = 1;

    for (unsigned i = 0; n > 0; i++, n >>= 1)
        if (n & 1)
            power *= powers[i];
    return power;
}

static long double times_power_of_ten(long double x, int n) {
    return n < 0 ? x / power_of_ten((unsigned)-n) : x * power_of_ten((unsigned)n);
}

/* The power of ten of the first digit of 2^n: in the range of doubles, 0.30103 is accurate enough
   for log10(2). */
static int power_below(int n) {
    int scaled = n * 30103;

    return scaled / 100000 - (scaled % 100000 < 0 ? 1 : 0);
}

/*
 * Whether `half`, which ends in .5, is x times ten to the n. If it can be, the computation is
 * exact: twice the half is odd and has 25 bits, x has 53, and they differ by powers of 5 and 2.
 */
static bool is_tie(double x, int n, long double half) {
    enum { MOST = 10, LEAST_N = -13 };
    long double power;

    if (n > MOST || n < LEAST_N)
        return false;
    power = power_of_ten((unsigned)(n < 0 ? -n : n));
    if (n <= 0)
        return half * power == x;
    return (unsigned long)(2 * half) % (unsigned long)ldexpl(power, -n) == 0 && half / power == x;
}

/* Uses the bits, because other libraries may have set the thread's floating point unit to treat
   small numbers as 0. */
static uint64_t magnitude(double x) {
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits << 1;
}

static bool is_zero(double x) {
    return magnitude(x) == 0;
}

static bool is_subnormal(double x) {
    return magnitude(x) >> 53 == 0;
}

/*
 * The digits of x, rounded, and the power of ten of the first one. The error of the product of x
 * and a power is less than 20 units of its last bit, 2^-64: 1e-11 of the last digit. Returns false
 * near a tie, where the direction of rounding requires the full expansion, and for numbers that are
 * too small to compute with.
 */
static bool digits_of(double x, unsigned long *digits, int *ten) {
    static const long double near_tie = 1e-10L;
    long double scaled, half;
    int two;

    *digits = 0;
    *ten = 0;
    if (is_zero(x))
        return true;
    if (is_subnormal(x))
        return false;
    (void)frexp(x, &two);
    *ten = power_below(two - 1);
    scaled = times_power_of_ten(x, DIGITS - 1 - *ten);
    if (scaled >= 10.0L * LEAST) {
        scaled /= 10;
        ++*ten;
    }
    *digits = (unsigned long)scaled;
    half = (long double)*digits + 0.5L;
    if (fabsl(scaled - half) >= near_tie)
        *digits += scaled > half;
    else if (is_tie(x, DIGITS - 1 - *ten, half))
        *digits += *digits & 1;
    else
        return false;
    if (*digits == 10UL * LEAST) {
        *digits = LEAST;
        ++*ten;
    }
    return true;
}

/* -1.234567e-308: the sign, the digits with a point, and an exponent of two or three digits. */
bool dt_put_float(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term) {
    char raw[] = "-1.234567e-308", *s = raw + 1;
    unsigned long digits;
    unsigned exponent;
    double x;
    int ten;

    if (!enif_get_double(env, term, &x) || !digits_of(fabs(x), &digits, &ten))
        return dt_put_runtime(text, term);
    for (int i = DIGITS; i > 1; i--, digits /= 10)
        s[i] = (char)('0' + digits % 10);
    s[0] = (char)('0' + digits);
    s += DIGITS + 2;
    *s++ = ten < 0 ? '-' : '+';
    exponent = (unsigned)(ten < 0 ? -ten : ten);
    if (exponent >= 100)
        *s++ = (char)('0' + exponent / 100);
    *s++ = (char)('0' + exponent / 10 % 10);
    *s++ = (char)('0' + exponent % 10);
    return signbit(x) ? dt_put(text, raw, (size_t)(s - raw))
                      : dt_put(text, raw + 1, (size_t)(s - raw - 1));
}

#else

bool dt_put_float(struct dt_text *text, DT_UNUSED ErlNifEnv *env, ERL_NIF_TERM term) {
    return dt_put_runtime(text, term);
}

#endif
