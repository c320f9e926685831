/*
 * The catalogue, the enabled probes and the backends as Erlang terms, for dyntrace:probes/0,
 * listeners/0 and info/0.
 */
#ifndef DT_DESCRIBE_H
#define DT_DESCRIBE_H

#include <erl_nif.h>

/* [#{provider, name, doc, fields, events}] */
ERL_NIF_TERM dt_describe_probes(ErlNifEnv *env);

/* [#{provider, name, backends}] of the probes that are enabled now. */
ERL_NIF_TERM dt_describe_listeners(ErlNifEnv *env);

/* [{Probe, Backend, Id}] of the consumers that are attached to these probes. The id is unique among
   the consumers of one probe in one backend; if there are more than DT_CONSUMERS, some have none.
   Unknown names are ignored. */
enum { DT_CONSUMERS = 64 };
ERL_NIF_TERM dt_describe_consumers(ErlNifEnv *env, ERL_NIF_TERM names);

/* #{Backend => available | {missing, Why}} */
ERL_NIF_TERM dt_describe_backends(ErlNifEnv *env);

/* #{Provider => available | {missing, Why}}: whether LTTng gets its tracepoints from dyntrace. */
ERL_NIF_TERM dt_describe_lttng_providers(ErlNifEnv *env);

/* The path of the library that provides the tracepoints of org_erlang_dyntrace, or undefined. */
ERL_NIF_TERM dt_describe_lttng_library(ErlNifEnv *env);

/* #{Probe | unknown => the number of events that could not be decoded}, without zeros. */
ERL_NIF_TERM dt_describe_undecoded(ErlNifEnv *env);

#endif
