/* CRC-32 of zlib's polynomial (0xedb88320, reflected). Pure function, any thread. */
#ifndef SESSION_CRC_H
#define SESSION_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32_of(const void *p, size_t n);

#endif
