/* Job: libFuzzer's entry for one target: -DFUZZ_RUN=fuzz_NAME (tests/lib/fuzz_targets.h). */
#include "tests/lib/fuzz_targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_RUN(data, size);
    return 0;
}
