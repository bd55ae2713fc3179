/*
 * Readable names of kernels: the qualified name and template arguments out of a C++ (Itanium)
 * mangled name; parameters are left out, since a listing has no room for them.
 *
 * A small reader of our own instead of the C++ runtime's: that one isn't a dependency here, and the
 * text it makes of a hostile name has no bound. Covers names, templates of types and integer
 * constants; anything else stays mangled. Pure, any thread.
 */
#ifndef SASS_VIEW_DEMANGLE_H
#define SASS_VIEW_DEMANGLE_H

#include <stddef.h>

/* "_Z5scaleIfEvPT_S0_i" -> "scale<float>". A name that isn't understood, doesn't fit, or isn't
 * mangled is copied (cut to fit). Returns `out`, always terminated when size > 0. */
char *demangle(const char *name, char *out, size_t size);

#endif
