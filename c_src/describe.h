/*
 * The catalogue, the enabled probes and the backends as Erlang terms: what dyntrace:probes/0,
 * listeners/0 and info/0 return.
 */
#ifndef DT_DESCRIBE_H
#define DT_DESCRIBE_H

#include <erl_nif.h>

/* [#{provider, name, doc, fields, events}] */
ERL_NIF_TERM dt_describe_probes(ErlNifEnv *env);

/* [#{provider, name, backends}] of the probes that are enabled now. */
ERL_NIF_TERM dt_describe_listeners(ErlNifEnv *env);

/* [{Probe, Backend, Id}] of the consumers that are attached to these probes. The id is a number
   that the consumers of one probe in one backend do not share; of more than DT_CONSUMERS, some have
   none. Names that are no probe's are ignored. */
enum { DT_CONSUMERS = 64 };
ERL_NIF_TERM dt_describe_consumers(ErlNifEnv *env, ERL_NIF_TERM names);

/* #{Backend => available | {missing, Why}} */
ERL_NIF_TERM dt_describe_backends(ErlNifEnv *env);

/* #{Provider => available | {missing, Why}}: whether LTTng has its tracepoints from dyntrace. */
ERL_NIF_TERM dt_describe_lttng_providers(ErlNifEnv *env);

/* The path of the library that provides the tracepoints of org_erlang_dyntrace, or undefined. */
ERL_NIF_TERM dt_describe_lttng_library(ErlNifEnv *env);

/* #{Probe | unknown => how many events could not be decoded}, without those that are 0. */
ERL_NIF_TERM dt_describe_undecoded(ErlNifEnv *env);

#endif
