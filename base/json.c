/* See json.h. To read another kind of field: a function here. */
#include "base/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>

double json_number(const struct cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

const char *json_text(const struct cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

void json_line(const struct cJSON *o, const char *key, char *out, size_t size)
{
    snprintf(out, size, "%s", json_text(o, key));
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < ' ') *p = ' ';
}
