/* Scripted faults (--script-fault), for tests of what the screen does about them. */
#ifndef ENGINE_FAULTS_H
#define ENGINE_FAULTS_H

#include "engine/engine.h"

/* Plays the fault that is due at `where` in this round: exits, kills itself, hangs until the
 * process is ended, or gives ERR_FAILED like a backend whose kernel faulted. OK when none is due.
 */
enum status faults_check(struct engine *e, enum fault_where where);

#endif
