/* The fold's part for traces: launches seen inside windows, the first MAX_TRACE_SPANS of a session;
 * what comes after is counted. */
#include "session/model_priv.h"

enum status trace_add(struct session *s, uint64_t t_ns, uint64_t dur_ns, uint32_t row)
{
    if (s->ntrace == MAX_TRACE_SPANS) {
        s->trace_left_out++;
        return OK;
    }
    enum status st = fold_grow(&s->trace, s->ntrace, sizeof *s->trace);
    if (st != OK) return st;
    s->trace[s->ntrace++] = (struct trace_span){
        .t_ns = t_ns, .dur_ns = dur_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)dur_ns, .row = row};
    return OK;
}
