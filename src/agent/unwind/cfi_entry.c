/* SPDX-License-Identifier: MIT */
#include "agent/unwind/cfi_entry.h"

#include "agent/unwind/cfi_program.h"

#include "agent/sys/poison.h"

/* How pointers are encoded (DW_EH_PE_*). */
#define PCREL       0x10
#define FORMAT_MASK 0x0f
#define OTHER_MASK  0xf0

bool sp_cfi_entry_within(const struct sp_cfi_view *view, const uint8_t *at,
			 struct sp_slice *ret)
{
	uint64_t bytes;

	if (at < view->low || at > view->high)
		return false;
	*ret = (struct sp_slice){at, view->high, false};
	bytes = sp_cfi_read_fixed(ret, 4);
	if (ret->failed || bytes >= 0xfffffff0u || bytes > sp_slice_left(ret))
		return false;
	ret->end = ret->at + bytes;
	return true;
}

/* A number in one of the formats. */
static uint64_t read_number(struct sp_slice *s, uint8_t format)
{
	switch (format) {
	case 0x00: /* absptr, udata8, sdata8 */
	case 0x04:
	case 0x0c:
		return sp_cfi_read_fixed(s, 8);
	case 0x03: /* udata4 */
		return sp_cfi_read_fixed(s, 4);
	case 0x0b: /* sdata4 */
		return (uint64_t)(int32_t)sp_cfi_read_fixed(s, 4);
	case 0x02: /* udata2 */
		return sp_cfi_read_fixed(s, 2);
	case 0x0a: /* sdata2 */
		return (uint64_t)(int16_t)sp_cfi_read_fixed(s, 2);
	case 0x01: /* uleb128 */
		return sp_slice_varint(s);
	case 0x09: /* sleb128 */
		return (uint64_t)sp_cfi_read_sleb(s);
	default:
		s->failed = true;
		return 0;
	}
}

/* The address of a function: as it is, or relative to where it stands. */
static uintptr_t read_address(struct sp_slice *s, uint8_t encoding,
			      uintptr_t moved)
{
	uintptr_t here = (uintptr_t)s->at + moved;
	uint64_t number = read_number(s, encoding & FORMAT_MASK);

	if ((encoding & OTHER_MASK) == PCREL)
		return here + number;
	if (encoding & OTHER_MASK)
		s->failed = true;
	return number;
}

/* The letters of a CIE's augmentation, and the data behind a z. */
static bool read_augmentation(struct sp_slice *s, const char *letters,
			      struct sp_cfi_cie *cie)
{
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = sp_slice_u8(s);
			break;
		case 'P': /* what handles exceptions */
			encoding = sp_slice_u8(s);
			read_number(s, encoding & FORMAT_MASK);
			break;
		case 'L':
			sp_slice_u8(s);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		default:
			if (!sp_arch_is_signed(*letters))
				return false;
		}
	}
	return !s->failed;
}

bool sp_cfi_read_cie(const struct sp_cfi_view *view, const uint8_t *at,
		     struct sp_cfi_cie *ret)
{
	const char *letters;
	struct sp_slice s, data = {.failed = false};
	uint64_t bytes;
	uint8_t version;

	*ret = (struct sp_cfi_cie){.at = NULL};
	if (!sp_cfi_entry_within(view, at, &s) || sp_cfi_read_fixed(&s, 4) != 0)
		return false;
	version = sp_slice_u8(&s);
	letters = (const char *)s.at;
	while (sp_slice_u8(&s))
		;
	ret->code_align = sp_slice_varint(&s);
	ret->data_align = sp_cfi_read_sleb(&s);
	if (sp_slice_varint(&s) != SP_ARCH_RETURN || s.failed ||
	    (version != 1 && version != 3))
		return false;
	if (letters[0] == 'z') {
		bytes = sp_slice_varint(&s);
		data.at = sp_slice_take(&s, bytes);
		if (!data.at)
			return false;
		data.end = data.at + bytes;
		ret->has_data = true;
		if (!read_augmentation(&data, letters + 1, ret))
			return false;
	} else if (letters[0]) {
		return false;
	}
	ret->program = s;
	ret->at = at;
	return true;
}

bool sp_cfi_read_fde(const struct sp_cfi_view *view, const uint8_t *at,
		     struct sp_cfi_cie *cie, struct sp_cfi_fde *ret)
{
	const uint8_t *common;
	struct sp_slice s;
	uint64_t back;

	if (!sp_cfi_entry_within(view, at, &s))
		return false;
	common = s.at;
	back = sp_cfi_read_fixed(&s, 4);
	if (s.failed || back == 0 || back > (size_t)(common - view->low))
		return false;
	common -= back;
	if (common != cie->at && !sp_cfi_read_cie(view, common, cie))
		return false;
	ret->begin = read_address(&s, cie->encoding, view->moved);
	ret->bytes = read_number(&s, cie->encoding & FORMAT_MASK);
	if (cie->has_data)
		sp_slice_take(&s, sp_slice_varint(&s));
	ret->program = s;
	return !s.failed;
}
