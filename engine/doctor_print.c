/* The doctor's findings for a person or a program. To add a field: doctor.h has it, a line here. */
#include "engine/doctor_print.h"

#include "cupti/doctor.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

static void add_sources(cJSON *root, const struct doctor *d)
{
    cJSON *list = cJSON_AddArrayToObject(root, "sources");
    for (int r = 0; r < COUNTER_ROLES; r++) {
        const struct counter_state *s = &d->sources[r];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", counter_role_name((enum counter_role)r));
        cJSON_AddStringToObject(o, "state", counter_health_name(s->health));
        cJSON_AddStringToObject(o, "why", s->why);
        cJSON_AddStringToObject(o, "remedy", s->remedy);
        cJSON_AddStringToObject(o, "detail", s->detail);
        cJSON_AddItemToArray(list, o);
    }
}

static void print_json(const struct doctor *d)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "driver_version", d->driver_version);
    cJSON_AddStringToObject(o, "driver_build", d->driver_build);
    cJSON_AddStringToObject(o, "driver_why", d->driver_why);
    cJSON_AddStringToObject(o, "device", d->device);
    cJSON_AddStringToObject(o, "chip", d->chip);
    cJSON_AddNumberToObject(o, "sm", d->cc_major * 10 + d->cc_minor);
    cJSON_AddNumberToObject(o, "sms", d->sms);
    cJSON_AddNumberToObject(o, "cupti_version", d->cupti_version);
    cJSON_AddStringToObject(o, "cupti_path", d->cupti_path);
    cJSON_AddStringToObject(o, "cupti_why", d->cupti_why);
    cJSON_AddStringToObject(o, "other_profiler", d->other);
    if (d->admin_only < 0)
        cJSON_AddNullToObject(o, "admin_only");
    else
        cJSON_AddBoolToObject(o, "admin_only", d->admin_only);
    cJSON_AddBoolToObject(o, "root", d->root);
    cJSON_AddBoolToObject(o, "cap_sys_admin", d->cap_sys_admin);
    cJSON_AddBoolToObject(o, "cap_perfmon", d->cap_perfmon);
    cJSON_AddBoolToObject(o, "container", d->container);
    cJSON_AddBoolToObject(o, "wsl", d->wsl);
    add_sources(o, d);
    char *text = cJSON_Print(o);
    if (text) puts(text);
    free(text);
    cJSON_Delete(o);
}

int doctor_print(bool json)
{
    struct doctor d;
    struct buf text = {0};
    bool counters = false;
    doctor_run(&d, 0);
    if (json) {
        print_json(&d);
    } else {
        doctor_text(&d, &text);
        fwrite(text.data, 1, text.len, stdout);
        buf_free(&text);
    }
    for (int r = COUNTER_PM; r < COUNTER_ROLES; r++)
        counters |= d.sources[r].health == COUNTER_READY;
    return counters ? EXIT_OK : EXIT_UNAVAILABLE;
}
