/* The page on frames, from the same table as the code: docs/FRAMES.md is what this prints. */
#include <stdio.h>

#include "session/proto.h"

static const char *const kinds[] = {
    [FIELD_U8] = "u8",   [FIELD_U16] = "u16",    [FIELD_U32] = "u32",
    [FIELD_U64] = "u64", [FIELD_I32] = "i32",    [FIELD_I64] = "i64",
    [FIELD_F64] = "f64", [FIELD_STR] = "string", [FIELD_BLOB] = "blob",
};

static const char intro[] =
    "# Frames\n"
    "\n"
    "Generated from session/proto.def; a test holds the two together (`ACCEPT=1` writes this "
    "again).\n"
    "\n"
    "A frame is `u32 len, u16 type, u16 version, u64 t_ns`, `len` bytes of payload, and the "
    "CRC-32\n"
    "(zlib's polynomial) of all bytes before it; little endian. `len` is at most %d. Times are ns\n"
    "after the first HELLO. In the payload the fields follow each other: a string is `u16` length "
    "and\n"
    "bytes, a blob `u32` length and bytes. Frames of class *sample* may be lost when the ring "
    "between\n"
    "engine and screen is full, and are counted in DROPS; *control* frames never are.\n"
    "\n"
    "A later version of a frame has more fields at its end: readers leave what they don't know, "
    "and a\n"
    "missing tail reads as zero. Frames of unknown type are skipped and counted.\n"
    "\n"
    "A session file (`.sasstop`) is `\"SASSTOP\\n\"`, `u32` format (1), `u32` 0, then chunks: "
    "`u32`\n"
    "`CHNK`, `u32` bytes unpacked, `u32` bytes packed, `u32` CRC-32 of the packed bytes, one zstd\n"
    "frame that holds whole frames. A chunk is closed at 64 KiB or after 250 ms; a reader stops "
    "at\n"
    "the first damaged one and keeps what came before.\n";

static void describe(unsigned type, struct buf *out)
{
    unsigned n = 0;
    const struct proto_field *f = proto_fields(type, &n);

    buf_printf(out, "\n## %u %s\n\n%s. Version %u, %s.\n\n", type, proto_name(type),
               proto_meaning(type), proto_version(type),
               proto_droppable(type) ? "sample" : "control");
    buf_printf(out, "| field | type | meaning |\n|---|---|---|\n");
    for (unsigned i = 0; i < n; i++) {
        buf_printf(out, "| `%s` | %s", f[i].name, kinds[f[i].kind]);
        if (f[i].kind == FIELD_STR) buf_printf(out, ", at most %d bytes", f[i].size - 1);
        buf_printf(out, " | %s |\n", f[i].doc);
    }
}

void proto_docs(struct buf *out)
{
    buf_printf(out, intro, FRAME_MAX);
    for (unsigned type = 0; type < FRAME_TYPE_END; type++)
        if (proto_size(type)) describe(type, out);
}
