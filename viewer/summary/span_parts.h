/*
 * Which part of a span's time other spans of the same process took: of a request, its queries.
 *
 * A span is inside another one if it ended earlier, and its middle is after the other one's begin:
 * times of begins are computed from durations, and can be late by some microseconds. What is inside
 * of both an inner and an outer span counts for both, and the inner one only with the rest of its
 * time.
 */
#pragma once

#include "summary/named_counts.h"

/* A span that has ended, or several of a kind inside the same one: the time without the spans
   inside it. */
struct dt_span_part {
    const struct dt_named *row;
    int64_t middle, own;
};

/* Adds a span that ends now to the ended ones of its process, and what is inside it to its row. The
   array is made when it is needed. */
void dt_span_parts_ended(GArray **ended, struct dt_named *row, int64_t begin, int64_t end);
