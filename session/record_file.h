/* The layout of session files for recorder.c, record_reader.c and record_cut.c; see record.h. */
#ifndef SESSION_RECORD_FILE_H
#define SESSION_RECORD_FILE_H

#include "session/record.h"

#define FILE_MAGIC "SASSTOP\n"

enum {
    FILE_VERSION = 1,
    FILE_HEAD = 16,
    CHUNK_HEAD = 16,
    CHUNK_MAGIC = 0x4b4e4843, /* "CHNK" */
    /* A chunk is closed once it reaches CHUNK_RAW_MAX, so it can pass it by one frame. */
    CHUNK_RAW_LIMIT = CHUNK_RAW_MAX + FRAME_HEAD + FRAME_MAX + FRAME_TAIL,
    CHUNK_COMP_LIMIT = CHUNK_RAW_LIMIT + (CHUNK_RAW_LIMIT >> 7) + 1024,
};

#endif
