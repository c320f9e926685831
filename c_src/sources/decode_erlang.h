/*
 * The decoders of the provider erlang.
 */
#ifndef DT_SOURCES_DECODE_ERLANG_H
#define DT_SOURCES_DECODE_ERLANG_H

#include "sources/decode.h"

#define ERLANG(tag, probe, decoder, flags) dt_decoder dt_decode_erlang_##decoder;
#define EVERY(probe, decoder) dt_decoder dt_decode_erlang_##decoder;
#include "sources/routes.def"

#endif
