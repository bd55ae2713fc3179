/*
 * doctor: what can be measured on this machine, and for everything that can't, why and what to try.
 *
 * doctor_run() opens the driver, a context on the device and CUPTI, and asks every source; it arms
 * pm, pc and range once each, since only that shows whether counters are permitted. It is meant for
 * a process of its own (sasstop-engine --doctor): CUPTI stays loaded. Launching thread only. Owns
 * nothing: plain values.
 */
#ifndef CUPTI_DOCTOR_H
#define CUPTI_DOCTOR_H

#include <stdbool.h>

#include "base/buf.h"
#include "cupti/counter.h"

struct doctor {
    int driver_version;    /* 13000 = CUDA 13.0; 0 = no driver */
    char driver_why[256];  /* when 0 */
    char driver_build[64]; /* "580.159.04"; "" unknown */
    char device[96];
    int sms, cc_major, cc_minor;
    unsigned cupti_version; /* 130001; 0 = none that can be used */
    char cupti_path[256], cupti_why[256];
    char chip[32];
    char other[64]; /* another profiler in this process */
    int admin_only; /* counters restricted to administrators: 1, 0, -1 = not known */
    bool root, cap_sys_admin, cap_perfmon, container, wsl;
    struct counter_state sources[COUNTER_ROLES];
};

/* Fills *d; never fails. */
void doctor_run(struct doctor *d, int device);

/* The same as text for a terminal, appended to `out`. */
void doctor_text(const struct doctor *d, struct buf *out);

/* RmProfilingAdminOnly in the text of /proc/driver/nvidia/params: 1, 0, or -1 when it is not there.
 */
int doctor_admin_only(const char *params);

/* Is capability `cap` in the CapEff line of the text of /proc/self/status? */
bool doctor_has_cap(const char *status, int cap);

#endif
