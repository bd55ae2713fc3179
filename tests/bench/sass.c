/*
 * Speed of the SASS reader on one core: decoding, and opening + census, over the files named; each
 * is repeated for at least half a second of processor time, which is what is counted. Prints one
 * line a figure: name, MB/s of code, ns/instruction.
 */
#include "sass_view/census.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILES_MAX = 4096 };
static const uint64_t LEAST_NS = 500000000;

static struct cubin cubins[FILES_MAX];
static int ncubins;

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t decode_all(void)
{
    uint64_t bytes = 0, sum = 0;
    for (int i = 0; i < ncubins; i++) {
        const struct decoder *d = decoder_get(cubins[i].sm);
        for (size_t k = 0; k < cubins[i].nkernels; k++) {
            const struct cubin_kernel *kernel = &cubins[i].kernels[k];
            struct insn in;
            for (uint32_t off = 0; off < kernel->code_size; off += INSN_BYTES) {
                insn_decode(d, kernel->code + off, off, &in);
                sum += in.cls + in.width + (uint64_t)in.key[0];
            }
            bytes += kernel->code_size;
        }
    }
    return sum ? bytes : 0;
}

static uint64_t census_all(void)
{
    uint64_t bytes = 0;
    for (int i = 0; i < ncubins; i++)
        for (size_t k = 0; k < cubins[i].nkernels; k++) {
            struct census s;
            if (census_make(&s, &cubins[i], &cubins[i].kernels[k])) exit(1);
            bytes += cubins[i].kernels[k].code_size;
            census_free(&s);
        }
    return bytes;
}

static uint64_t open_and_census(char **argv, int argc)
{
    uint64_t bytes = 0;
    for (int i = 1; i < argc; i++) {
        struct cubin c;
        if (cubin_open_file(&c, argv[i])) continue;
        for (size_t k = 0; k < c.nkernels; k++) {
            struct census s;
            if (census_make(&s, &c, &c.kernels[k])) exit(1);
            bytes += c.kernels[k].code_size;
            census_free(&s);
        }
        cubin_close(&c);
    }
    return bytes;
}

static void print(const char *name, uint64_t bytes, uint64_t ns)
{
    printf("%-16s %8.1f MB/s  %6.1f ns/instruction\n", name, (double)bytes * 1e3 / (double)ns,
           (double)ns * INSN_BYTES / (double)bytes);
}

int main(int argc, char **argv)
{
    uint64_t code = 0;
    for (int i = 1; i < argc && ncubins < FILES_MAX; i++)
        if (cubin_open_file(&cubins[ncubins], argv[i]) == OK) ncubins++;
    for (int what = 0; what < 3; what++) {
        static const char *const names[] = {"decode", "census", "open+census"};
        uint64_t bytes = 0, t0 = cpu_ns(), ns;
        do {
            uint64_t n = what == 0   ? decode_all()
                         : what == 1 ? census_all()
                                     : open_and_census(argv, argc);
            if (!n) {
                fprintf(stderr, "no code in these files\n");
                return 1;
            }
            code = n;
            bytes += n;
            ns = cpu_ns() - t0;
        } while (ns < LEAST_NS);
        print(names[what], bytes, ns);
    }
    printf("%d files, %.3f MB of code, %llu instructions\n", ncubins, (double)code / 1e6,
           (unsigned long long)(code / INSN_BYTES));
    return 0;
}
