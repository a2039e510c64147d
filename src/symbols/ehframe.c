/* SPDX-License-Identifier: MIT */
#include "symbols/ehframe.h"

#include <gelf.h>
#include <string.h>

#include "base/bisect.h"

/* The header: version, then how the pointer, the count and the table are
 * encoded.  Linkers write one kind: pcrel, 4-byte count, sorted 4-byte pairs
 * relative to the header. */
#define HEADER_BYTES 12
#define ENTRY_BYTES  8

/* Of a description: its length, where its common part is, the start of the
 * function relative to this field, and the size of the function, each in four
 * bytes.  Common parts may ask for other kinds, which no linker here makes. */
#define SIZE_AT 12

/* If its description does not say it, a function is not longer than that;
 * beyond it the table has a gap. */
#define FUNCTION_BYTES_MAX (16u << 20)

static const uint8_t usual_kind[4] = {1, 0x1b, 0x03, 0x3b};

/* They stand behind the table, in the segment that is loaded. */
static void use_descriptions(Elf *elf, const GElf_Phdr *header,
			     struct sp_ehframe *ret)
{
	GElf_Phdr phdr;
	Elf_Data *data;
	uint64_t skip;
	size_t n;

	if (elf_getphdrnum(elf, &n) != 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &phdr) ||
		    phdr.p_type != PT_LOAD || header->p_vaddr < phdr.p_vaddr ||
		    header->p_vaddr - phdr.p_vaddr >= phdr.p_filesz)
			continue;
		skip = header->p_vaddr - phdr.p_vaddr;
		if (header->p_offset != phdr.p_offset + skip)
			return;
		data = elf_getdata_rawchunk(elf, (int64_t)header->p_offset,
					    phdr.p_filesz - skip, ELF_T_BYTE);
		if (data) {
			ret->bytes = data->d_buf;
			ret->n_bytes = data->d_size;
		}
		return;
	}
}

static bool use_segment(Elf *elf, const GElf_Phdr *phdr, struct sp_ehframe *ret)
{
	Elf_Data *data;
	const uint8_t *bytes;
	uint32_t count;

	if (phdr->p_filesz < HEADER_BYTES || phdr->p_offset > INT64_MAX)
		return false;
	data = elf_getdata_rawchunk(elf, (int64_t)phdr->p_offset,
				    phdr->p_filesz, ELF_T_BYTE);
	if (!data || data->d_size < HEADER_BYTES)
		return false;
	bytes = data->d_buf;
	if (memcmp(bytes, usual_kind, sizeof(usual_kind)) != 0)
		return false;
	memcpy(&count, bytes + 8, sizeof(count));
	if (count > (data->d_size - HEADER_BYTES) / ENTRY_BYTES)
		return false;
	ret->table = bytes + HEADER_BYTES;
	ret->count = count;
	ret->base = phdr->p_vaddr;
	use_descriptions(elf, phdr, ret);
	return true;
}

bool sp_ehframe_open(Elf *elf, struct sp_ehframe *ret)
{
	size_t n;

	memset(ret, 0, sizeof(*ret));
	if (elf_getphdrnum(elf, &n) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(elf, (int)i, &phdr) &&
		    phdr.p_type == PT_GNU_EH_FRAME)
			return use_segment(elf, &phdr, ret);
	}
	return false;
}

static uint64_t start_of(const struct sp_ehframe *e, size_t i)
{
	int32_t offset;

	memcpy(&offset, e->table + i * ENTRY_BYTES, sizeof(offset));
	return e->base + (uint64_t)(int64_t)offset;
}

/* Of the function. */
static uint64_t size_of(const struct sp_ehframe *e, size_t i)
{
	int32_t at, start;
	uint32_t head[2], size;

	memcpy(&at, e->table + i * ENTRY_BYTES + 4, sizeof(at));
	if (at < 0 || e->n_bytes < SIZE_AT + sizeof(size) ||
	    (size_t)at > e->n_bytes - SIZE_AT - sizeof(size))
		return FUNCTION_BYTES_MAX + 1;
	memcpy(head, e->bytes + at, sizeof(head));
	memcpy(&start, e->bytes + at + sizeof(head), sizeof(start));
	memcpy(&size, e->bytes + at + SIZE_AT, sizeof(size));
	if (head[0] < SIZE_AT || head[0] == UINT32_MAX || !head[1] ||
	    e->base + (uint64_t)at + sizeof(head) + (uint64_t)(int64_t)start !=
		    start_of(e, i))
		return FUNCTION_BYTES_MAX + 1;
	return size;
}

bool sp_ehframe_find(const struct sp_ehframe *e, uint64_t address,
		     uint64_t *ret_start)
{
	size_t at;

	/* The last start that is not behind the address; a forged table that
	 * is not sorted gives a wrong one, nothing worse. */
	SP_LOWER_BOUND(at, e->count, start_of(e, at) <= address);
	if (at == 0 || address - start_of(e, at - 1) >= size_of(e, at - 1))
		return false;
	*ret_start = start_of(e, at - 1);
	return true;
}
