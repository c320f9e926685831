/*
 * DT_UNUSED: for a parameter that the type of a function requires but that it may not use.
 */
#ifndef DT_CATALOGUE_UNUSED_H
#define DT_CATALOGUE_UNUSED_H

#define DT_UNUSED __attribute__((unused))

#endif
