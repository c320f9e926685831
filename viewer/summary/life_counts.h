/*
 * A bounded table of lives: how many processes of a kind a parent started, how many of them
 * crashed, and how many were short-lived.
 */
#pragma once

#include "summary/activity.h"

/* Processes with the same parent and name, or without a name but with the same initial call; or
   ports with the same driver and the same opener or listener. Parents without a name are summed by
   their initial call. */
struct dt_lives_row {
    struct dt_actor *parent; /* NULL: unknown */
    enum dt_kind kind;
    char *what;                            /* name, initial call or driver */
    uint64_t started, crashed, short_ones; /* in the recording */
    uint64_t ended, alive;                 /* also of those that began before */
    uint64_t restarted;                    /* of these, after a crash */
    int64_t first_crash, last_start;       /* DT_NO_VALUE: none */
    struct dt_actor *example; /* the last one that crashed, or the last open port with a known peer;
                                 else the last one */
};

struct dt_lives {
    GHashTable *rows;
};
void dt_lives_init(struct dt_lives *lives);
void dt_lives_free(struct dt_lives *lives);
/* Adds a process that is gone. */
void dt_lives_add(struct dt_lives *lives, struct dt_actor *actor);
/* The row of a process that is gone, or NULL. */
const struct dt_lives_row *dt_lives_of(const struct dt_lives *lives, const struct dt_actor *actor);
