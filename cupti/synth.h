/*
 * The synthetic sources: every role played without a GPU, for tests and the demo.
 *
 * Deterministic: the same seed, launches and script give the same numbers, bit for bit. Times are
 * on a virtual clock that starts at SYNTH_EPOCH_NS and moves by the launches only, so a span's
 * length depends on its kernel's name and macs, never on the machine. Every state says `synthetic`.
 *
 * Script: faults in a comma list, each WHAT[@ROLE][:N]; N = the window (or arm) from 1 at which it
 * happens, left out = always. no-privilege@pm   arm is refused as CUPTI does with result 35;
 * lasting busy@pm:2         the 2nd arm meets result 26 (another tool holds the counters)
 *   overflow@pm:3     window 3 says overflow and loses its second half
 *   drop-burst@pm:2   every other item of window 2 is lost and counted
 *   invalid-time@activity:1  the window's spans have no usable times
 *   absent@range      probed as unavailable (no library)
 *   fail@pc:1         start fails once
 */
#ifndef CUPTI_SYNTH_H
#define CUPTI_SYNTH_H

#include "cupti/counter.h"

#define SYNTH_EPOCH_NS 1700000000000000000ull
enum { SYNTH_GAP_NS = 1500 }; /* between two launches */

/* Checks a script; ERR_USAGE with the word that is wrong. NULL and "" are fine. */
enum status synth_check(const char *script);

/* What the synthetic kernel `name` is like: pure, for tests that compare. Percent of SM%, 5 to 95.
 */
double synth_sm_pct(const char *kernel, uint64_t seed);

/* Its duration on the virtual clock. */
uint64_t synth_duration_ns(const char *kernel, double macs, uint64_t seed);

#endif
