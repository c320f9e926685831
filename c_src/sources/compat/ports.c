#include "sources/compat/ports.h"

#include <stdatomic.h>
#include <string.h>

#include "backends/backends.h"
#include "catalogue/atoms.h"
#include "sources/parts.h"
#include "sources/routes.h"
#include "text/hash.h"

/* -- The table ------------------------------------------------------------------------- */

enum { BUCKET_BITS = 13, BUCKETS = 1 << BUCKET_BITS, ENTRIES = 7, ATTEMPTS = 100 };

struct entry {
    _Atomic(ERL_NIF_TERM) port, name, owner; /* port 0: free */
    atomic_bool closed;
};

/* The version is odd while a thread writes. A reader that finds another version after reading
   retries. Readers and writers never block: they give up after a few failed attempts. */
static struct bucket {
    atomic_uint version;
    struct entry entries[ENTRIES];
} buckets[BUCKETS];

static struct bucket *bucket_of(ERL_NIF_TERM port) {
    return &buckets[dt_hash(port, BUCKET_BITS)];
}

/* With this order, a reader that sees a write also sees the odd version before it. Fences would
   suffice, but ThreadSanitizer does not support them. */
#define READ(field) atomic_load_explicit(&(field), memory_order_acquire)
#define WRITE(field, value) atomic_store_explicit(&(field), value, memory_order_release)

static bool lock(struct bucket *bucket, unsigned *version) {
    for (int i = 0; i < ATTEMPTS; i++) {
        *version = READ(bucket->version);
        if (*version % 2 == 0 &&
            atomic_compare_exchange_weak_explicit(&bucket->version, version, *version + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    }
    return false;
}

static void unlock(struct bucket *bucket, unsigned version) {
    WRITE(bucket->version, version + 2);
}

static struct entry *find(struct bucket *bucket, ERL_NIF_TERM port) {
    for (struct entry *e = bucket->entries; e < bucket->entries + ENTRIES; e++)
        if (READ(e->port) == port)
            return e;
    return NULL;
}

/* A free entry, the entry of a closed port or, in a full bucket, any entry. */
static struct entry *place(struct bucket *bucket, unsigned version) {
    struct entry *closed = NULL;

    for (struct entry *e = bucket->entries; e < bucket->entries + ENTRIES; e++) {
        if (!READ(e->port))
            return e;
        if (READ(e->closed))
            closed = e;
    }
    return closed ? closed : &bucket->entries[version / 2 % ENTRIES];
}

/* Whether the VM also reports closed ports: otherwise the table would fill up. */
static bool is_kept(void) {
    const struct dt_tag *closed = dt_tag_of(DT_GROUP_ports, atom_closed);

    for (unsigned i = 0; i < closed->count; i++)
        if (!closed->routes[i]->decode && dt_is_enabled(closed->routes[i]->probe))
            return true;
    return false;
}

/* Unknown values do not replace known ones, except for a new port, whose number may be reused. */
static void put(ERL_NIF_TERM port, struct dt_port known, bool is_new) {
    struct bucket *bucket = bucket_of(port);
    struct entry *entry;
    unsigned version;

    if (!is_kept() || !lock(bucket, &version))
        return;
    entry = find(bucket, port);
    if (!entry || is_new) {
        entry = entry ? entry : place(bucket, version);
        WRITE(entry->port, port);
        WRITE(entry->name, DT_PORTS_UNKNOWN);
        WRITE(entry->owner, DT_PORTS_UNKNOWN);
        WRITE(entry->closed, false);
    }
    if (known.name)
        WRITE(entry->name, known.name);
    if (known.owner)
        WRITE(entry->owner, known.owner);
    unlock(bucket, version);
}

static void put_closed(ERL_NIF_TERM port) {
    struct bucket *bucket = bucket_of(port);
    struct entry *entry;
    unsigned version;

    if (!lock(bucket, &version))
        return;
    if ((entry = find(bucket, port)))
        WRITE(entry->closed, true);
    unlock(bucket, version);
}

static void get(ERL_NIF_TERM port, struct dt_port *found) {
    struct bucket *bucket = bucket_of(port);

    for (int i = 0; i < ATTEMPTS; i++) {
        unsigned version = READ(bucket->version);
        const struct entry *entry = find(bucket, port);

        *found = entry ? (struct dt_port){READ(entry->name), READ(entry->owner)}
                       : (struct dt_port){DT_PORTS_UNKNOWN, DT_PORTS_UNKNOWN};
        if (version % 2 == 0 && READ(bucket->version) == version)
            return;
    }
    *found = (struct dt_port){DT_PORTS_UNKNOWN, DT_PORTS_UNKNOWN};
}

/* -- Unknown ports ------------------------------------------------------------------------ */

enum { UNKNOWN = 256 };

/* If there are more, the others are recorded at their next event. */
static _Atomic(ERL_NIF_TERM) unknown[UNKNOWN];
static atomic_uint next_unknown;

static void note_unknown(ERL_NIF_TERM port) {
    unsigned next = atomic_fetch_add_explicit(&next_unknown, 1, memory_order_relaxed);

    atomic_store_explicit(&unknown[next % UNKNOWN], port, memory_order_relaxed);
}

/* Callbacks are exported, so the tracee may be any term. Only a local port is one word, which can
   be stored beyond the event. */
static bool is_local_port(const struct dt_traced *trace) {
    ErlNifPort port;

    return enif_get_local_port(trace->env, trace->tracee, &port);
}

void dt_ports_get(const struct dt_traced *trace, struct dt_port *found) {
    get(trace->tracee, found);
    if ((!found->name || !found->owner) && is_local_port(trace))
        note_unknown(trace->tracee);
}

/* -- Data from events ------------------------------------------------------------------------ */

/* The port that this thread's scheduler runs. No other one runs there until it is scheduled out. */
static _Thread_local struct {
    ERL_NIF_TERM port;   /* 0: none, or it runs for a caller */
    bool had[DT_PROBES]; /* the probe has fired */
} run;

static ERL_NIF_TERM local_pid(const struct dt_traced *trace, ERL_NIF_TERM term) {
    ErlNifPid pid;

    return enif_get_local_pid(trace->env, term, &pid) ? term : DT_PORTS_UNKNOWN;
}

/* {open, Owner, Name}, {closed, Reason}, {'receive', timeout} */
void dt_ports_note_ports(const struct dt_traced *trace) {
    ERL_NIF_TERM name;

    if (!is_local_port(trace))
        return;
    if (trace->tag == atom_closed)
        put_closed(trace->tracee);
    else if (trace->tag == atom_receive)
        run.port = 0; /* messages of the driver are now neither input nor output */
    else if (trace->tag == atom_open && dt_extra(trace, &name))
        put(trace->tracee,
            (struct dt_port){enif_is_atom(trace->env, name) ? name : DT_PORTS_UNKNOWN,
                             local_pid(trace, trace->term)},
            true);
}

/* {Caller, {connect, NewOwner}} */
void dt_ports_note_port_receive(const struct dt_traced *trace) {
    const ERL_NIF_TERM *request, *connect;

    if (is_local_port(trace) && dt_get_pair(trace, trace->term, &request) &&
        dt_get_pair(trace, request[1], &connect) && enif_is_identical(connect[0], atom_connect))
        put(trace->tracee, (struct dt_port){DT_PORTS_UNKNOWN, local_pid(trace, connect[1])}, false);
}

/* {inet_async, Listener, Ref, {ok, Socket}} to the process that accepts it. */
void dt_ports_note_port_send(const struct dt_traced *trace) {
    const ERL_NIF_TERM *async, *result;
    ERL_NIF_TERM to;
    struct dt_port listener;
    ErlNifPort socket;
    int size;

    if (!enif_get_tuple(trace->env, trace->term, &size, &async) || size != 4 ||
        !enif_is_identical(async[0], atom_inet_async) || !dt_get_pair(trace, async[3], &result) ||
        !enif_get_local_port(trace->env, result[1], &socket) || !dt_extra(trace, &to))
        return;
    dt_ports_get(trace, &listener);
    put(result[1], (struct dt_port){listener.name, local_pid(trace, to)}, true);
}

/* {in | out | …, What}; What is 0 for input, output and timeouts. */
void dt_ports_note_running_ports(const struct dt_traced *trace) {
    int what;

    if (trace->tag == atom_in && enif_get_int(trace->env, trace->term, &what) && what == 0) {
        memset(run.had, 0, sizeof run.had);
        run.port = trace->tracee;
    } else {
        run.port = 0;
    }
}

bool dt_ports_take_ready(const struct dt_traced *trace) {
    bool *had = &run.had[trace->probe];

    if (run.port != trace->tracee || *had)
        return false;
    *had = true;
    return true;
}

/* -- Calls by the application ------------------------------------------------------------------ */

DT_NIF(dt_ports_set) {
    ErlNifPort port;
    ErlNifPid owner;

    if (!enif_get_local_port(env, argv[0], &port) || !enif_is_atom(env, argv[1]) ||
        !enif_get_local_pid(env, argv[2], &owner))
        return enif_make_badarg(env);
    put(argv[0], (struct dt_port){argv[1], argv[2]}, false);
    return atom_ok;
}

DT_NIF(dt_ports_take_unknown) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int i = 0; i < UNKNOWN; i++) {
        ERL_NIF_TERM port = atomic_exchange_explicit(&unknown[i], 0, memory_order_relaxed);

        if (port)
            list = enif_make_list_cell(env, port, list);
    }
    return list;
}

DT_NIF(dt_ports_count) {
    unsigned count = 0;

    for (int b = 0; b < BUCKETS; b++)
        for (int i = 0; i < ENTRIES; i++)
            count += READ(buckets[b].entries[i].port) && !READ(buckets[b].entries[i].closed);
    return enif_make_uint(env, count);
}
