/*
 * The decoders of the provider erlang.
 */
#ifndef DT_SOURCES_DECODE_ERLANG_H
#define DT_SOURCES_DECODE_ERLANG_H

#include "sources/decode.h"

#define ERLANG(tag, probe, decoder, flags) DT_DECODER(erlang_##decoder)
#define EVERY(probe, decoder) DT_DECODER(erlang_##decoder)
#include "sources/routes.def"

#endif
