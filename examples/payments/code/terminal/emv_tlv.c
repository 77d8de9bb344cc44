/*
 * Reads the BER-TLV data that a chip card hands to the terminal (EMV Book 3, annex B).
 *
 * The parser never allocates and never recurses: a card is untrusted input, and the terminal has 64 KiB of memory.
 */
#include <stddef.h>
#include <stdint.h>

enum tlv_status { TLV_OK = 0, TLV_END, TLV_TRUNCATED, TLV_UNSUPPORTED };

struct tlv_reader {
    const uint8_t *bytes;
    size_t length;
    size_t at;
};

struct tlv {
    uint32_t tag;
    const uint8_t *value;
    size_t length;
};

void tlv_init(struct tlv_reader *reader, const uint8_t *bytes, size_t length)
{
    reader->bytes = bytes;
    reader->length = length;
    reader->at = 0;
}

static int next_byte(struct tlv_reader *reader, uint8_t *byte)
{
    if (reader->at >= reader->length)
        return 0;
    *byte = reader->bytes[reader->at++];
    return 1;
}

/* Tags have one to three bytes; bit 8 of every byte but the last says that another one follows. */
static enum tlv_status read_tag(struct tlv_reader *reader, uint32_t *tag)
{
    uint8_t byte;

    if (!next_byte(reader, &byte))
        return TLV_END;
    *tag = byte;
    if ((byte & 0x1f) != 0x1f)
        return TLV_OK;
    for (int count = 1; count < 3; count++) {
        if (!next_byte(reader, &byte))
            return TLV_TRUNCATED;
        *tag = (*tag << 8) | byte;
        if (!(byte & 0x80))
            return TLV_OK;
    }
    return TLV_UNSUPPORTED;
}

static enum tlv_status read_length(struct tlv_reader *reader, size_t *length)
{
    uint8_t byte;

    if (!next_byte(reader, &byte))
        return TLV_TRUNCATED;
    if (!(byte & 0x80)) {
        *length = byte;
        return TLV_OK;
    }
    if ((byte & 0x7f) == 0 || (byte & 0x7f) > 2)
        return TLV_UNSUPPORTED;
    *length = 0;
    for (int left = byte & 0x7f; left > 0; left--) {
        if (!next_byte(reader, &byte))
            return TLV_TRUNCATED;
        *length = (*length << 8) | byte;
    }
    return TLV_OK;
}

/* Reads the next element; the value points into the caller's buffer and is not copied. */
enum tlv_status tlv_next(struct tlv_reader *reader, struct tlv *element)
{
    enum tlv_status status = read_tag(reader, &element->tag);

    if (status != TLV_OK)
        return status;
    status = read_length(reader, &element->length);
    if (status != TLV_OK)
        return status;
    if (element->length > reader->length - reader->at)
        return TLV_TRUNCATED;
    element->value = reader->bytes + reader->at;
    reader->at += element->length;
    return TLV_OK;
}
