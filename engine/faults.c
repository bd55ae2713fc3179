/* Scripted faults. To add one: a value of enum fault_what, a name in options.c, a case here. */
#include "engine/faults.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool is_due(struct engine *e, enum fault_where where)
{
    const struct script_fault *f = &e->opt->fault;
    const char *variant;
    uint32_t kd;
    if (f->what == FAULT_NONE) return false;
    if (f->where != FAULT_AT_VARIANT) return f->where == where && f->round == e->round;
    return where == FAULT_AT_PREFILL && e->bo->selected(e->b, "q4k_gemm", &variant, &kd) &&
           !strcmp(variant, f->name);
}

enum status faults_check(struct engine *e, enum fault_where where)
{
    if (!is_due(e, where)) return OK;
    emit_flush(e->emit, 1000000000);
    switch (e->opt->fault.what) {
    case FAULT_EXIT:
        _exit(EXIT_FAILED);
    case FAULT_KILL:
        raise(SIGKILL);
        break;
    case FAULT_HANG:
        for (;;) pause();
    case FAULT_ERROR:
        return err_set(ERR_FAILED,
                       "illegal access (scripted): the kernel read outside its buffers");
    case FAULT_NONE:
        break;
    }
    return OK;
}
