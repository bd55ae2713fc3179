/*
 * The families that have a contract. To add one: its folder's family.c exports a const struct
 * kernel_family; declare it here and put it in the table.
 */
#include "kernels/family.h"

#include <stdlib.h>
#include <string.h>

extern const struct kernel_family q4k_gemm_family, q6k_gemm_family;

static const struct kernel_family *const families[] = {&q4k_gemm_family, &q6k_gemm_family};

int family_count(void)
{
    return (int)(sizeof families / sizeof *families);
}

const struct kernel_family *family_get(int i)
{
    return i >= 0 && i < family_count() ? families[i] : NULL;
}

const struct kernel_family *family_find(const char *name)
{
    for (int i = 0; i < family_count(); i++)
        if (!strcmp(families[i]->name, name)) return families[i];
    return NULL;
}

void family_inputs_free(struct family_inputs *in)
{
    free(in->a);
    free(in->b);
    *in = (struct family_inputs){0};
}
