/* `kcheck --fragments`: the map of B fragments and the sweep over it; see kernels/fragment.h. */
#include "kernels/fragment.h"
#include "kernels/kcheck/kcheck.h"

#include <stdio.h>

static void print_map(void)
{
    puts("lane -> row of the fragment, values of k, by register (b[nh][word])");
    for (int lane = 0; lane < FRAGMENT_LANES; lane++) {
        printf("%4d", lane);
        for (int reg = 0; reg < FRAGMENT_REGS; reg++) {
            struct fragment_place p = fragment_place_of(FRAGMENT_B, lane, reg);
            printf("   r%d: row %2d k %2d..%2d", reg, p.row, p.col, p.col + 3);
        }
        putchar('\n');
    }
}

int check_fragments(bool print)
{
    int differ = fragment_sweep();
    if (!print) return differ;
    print_map();
    printf("%d sub-blocks x %d lanes x %d registers: %d differ from ldmatrix\n", FRAGMENT_SUBS,
           FRAGMENT_LANES, FRAGMENT_REGS, differ);
    return differ;
}
