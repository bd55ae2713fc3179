/* --doctor: what works on this machine, as text or JSON on stdout. */
#ifndef ENGINE_DOCTOR_PRINT_H
#define ENGINE_DOCTOR_PRINT_H

#include <stdbool.h>

/* The exit status: 0, or 3 when no source of GPU counters works here. */
int doctor_print(bool json);

#endif
