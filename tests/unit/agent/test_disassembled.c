/* SPDX-License-Identifier: MIT */
/*
 * Length, kind and distance of instructions are what a disassembler (Zydis)
 * says of them, or they are not understood: in every operation with every form
 * of operand, and in all functions of some libraries; in the long form at the
 * beginning of every function of every program and library below /usr.
 */
#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <ftw.h>
#include <gelf.h>
#include <unistd.h>

#include "base/array.h"
#include "agent/divert/decode.h"
#include "support/test.h"
#include "symbols/ehframe.h"

#define ENTRY_BYTES 32u
#define MAX_LENGTH  15u

static ZydisDecoder decoder;

static struct count {
	unsigned long files, entries, compared, unknown, strange, wrong;
} count;

/* ---- one instruction ---- */

static uint8_t kind_of(const ZydisDecodedInstruction *z)
{
	const bool is_direct = z->attributes & ZYDIS_ATTRIB_IS_RELATIVE &&
			       z->raw.imm[0].is_relative;

	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return is_direct ? SP_INSTRUCTION_JMP : SP_INSTRUCTION_INDIRECT;
	case ZYDIS_MNEMONIC_CALL:
		return is_direct ? SP_INSTRUCTION_CALL
				 : SP_INSTRUCTION_INDIRECT_CALL;
	case ZYDIS_MNEMONIC_RET:
		return SP_INSTRUCTION_RET;
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD2:
		return SP_INSTRUCTION_TRAP;
	case ZYDIS_MNEMONIC_ENDBR64:
		return SP_INSTRUCTION_ENDBR;
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
		return SP_INSTRUCTION_LOOP;
	default:
		if (is_direct)
			return SP_INSTRUCTION_JCC;
		return z->attributes & ZYDIS_ATTRIB_IS_RELATIVE
			       ? SP_INSTRUCTION_RIP
			       : SP_INSTRUCTION_PLAIN;
	}
}

static struct sp_instruction theirs_of(const ZydisDecodedInstruction *z)
{
	struct sp_instruction i = {.length = z->length, .kind = kind_of(z)};

	if (!(z->attributes & ZYDIS_ATTRIB_IS_RELATIVE))
		return i;
	if (z->raw.imm[0].is_relative) {
		i.field = z->raw.imm[0].offset;
		i.field_size = z->raw.imm[0].size / 8;
		i.target_offset = z->length + z->raw.imm[0].value.s;
	} else {
		i.field = z->raw.disp.offset;
		i.field_size = z->raw.disp.size / 8;
		i.target_offset = z->length + z->raw.disp.value;
	}
	return i;
}

static void complain(const uint8_t *code, size_t n, const char *where,
		     const char *what)
{
	char text[3 * MAX_LENGTH + 1] = "";

	for (size_t i = 0; i < n && i < MAX_LENGTH; i++)
		sprintf(text + 3 * i, "%02x ", code[i]);
	if (count.wrong < 40)
		print_error("%s: %s: %s\n", where, what, text);
}

/* The length by which to go on, or 0. */
static unsigned int compare(const uint8_t *code, size_t n, const char *where)
{
	ZydisDecodedInstruction z;
	struct sp_instruction ours, theirs;
	const bool is_theirs = ZYAN_SUCCESS(
		ZydisDecoderDecodeInstruction(&decoder, NULL, code, n, &z));
	const bool is_ours = sp_decode(code, n, &ours);

	if (!is_theirs) {
		count.strange += is_ours;
		return 0;
	}
	count.compared++;
	if (!is_ours) {
		count.unknown++;
		return z.length;
	}
	theirs = theirs_of(&z);
	if (ours.length != theirs.length || ours.kind != theirs.kind ||
	    ours.field != theirs.field ||
	    ours.field_size != theirs.field_size ||
	    ours.target_offset != theirs.target_offset) {
		complain(code, theirs.length, where,
			 z.mnemonic < 9999 ? ZydisMnemonicGetString(z.mnemonic)
					   : "");
		count.wrong++;
	}
	return z.length;
}

/* ---- all forms ---- */

static const uint8_t before[][4] = {
	{0},       {1, 0x66},       {1, 0xf2},       {1, 0xf3},
	{1, 0x48}, {2, 0x66, 0x48}, {2, 0xf3, 0x44}, {2, 0x67, 0x41},
	{1, 0x64}, {1, 0xf0},       {2, 0x66, 0x66}, {3, 0x2e, 0x48, 0x66},
};
static const uint8_t heads[][6] = {
	{0},
	{1, 0x0f},
	{2, 0x0f, 0x38},
	{2, 0x0f, 0x3a},
	{2, 0xc5, 0xf8},
	{2, 0xc5, 0x75},
	{3, 0xc4, 0xe2, 0x79},
	{3, 0xc4, 0x62, 0xfd},
	{3, 0xc4, 0xe3, 0x7d},
	{3, 0xc4, 0x43, 0xf9},
	{3, 0xc4, 0xe1, 0x7b},
	{4, 0x62, 0xf1, 0x7c, 0x48},
	{4, 0x62, 0xf2, 0x7d, 0x28},
	{4, 0x62, 0x63, 0xfd, 0x09},
	{4, 0x62, 0xf1, 0x7f, 0x08},
	{4, 0x62, 0xf5, 0x7c, 0x48},
};

#define FIRST_VEX 4

static void compare_form(const uint8_t *prefix, const uint8_t *head, int op,
			 int modrm)
{
	uint8_t code[32];
	size_t n = 0;

	for (unsigned int i = 1; i <= prefix[0]; i++)
		code[n++] = prefix[i];
	for (unsigned int i = 1; i <= head[0]; i++)
		code[n++] = head[i];
	code[n++] = (uint8_t)op;
	code[n++] = (uint8_t)modrm;
	for (unsigned int i = 0; n < sizeof(code); i++)
		code[n++] = (uint8_t)(0x25 + 29 * i);
	compare(code, sizeof(code), "form");
}

TEST(all_forms)
{
	count = (struct count){0};
	for (size_t p = 0; p < sizeof(before) / sizeof(*before); p++)
		for (size_t h = 0; h < sizeof(heads) / sizeof(*heads); h++) {
			/* Others there are refused. */
			if (p && h >= FIRST_VEX && !test_rounds(0, 1))
				continue;
			for (int i = 0; i < 1 << 16; i++)
				compare_form(before[p], heads[h], i >> 8,
					     i & 255);
		}
	print_message("%lu forms, %lu not understood, %lu only by us\n",
		      count.compared, count.unknown, count.strange);
	assert_int_equal(count.wrong, 0);
	assert_true(count.compared > 1000000);
}

/* ---- functions of files ---- */

struct code {
	const char *path;
	const uint8_t *bytes; /* of the section */
	uint64_t start, end;
	uint64_t *entries;
	size_t n, room;
};

static void add_entry(struct code *c, uint64_t at)
{
	if (at < c->start || at >= c->end)
		return;
	if (c->n == c->room) {
		c->room = c->room ? 2 * c->room : 1024;
		c->entries = realloc(c->entries, c->room * sizeof(at));
		assert_non_null(c->entries);
	}
	c->entries[c->n++] = at;
}

static void add_symbols(struct code *c, Elf_Scn *section,
			const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	if (header->sh_entsize == 0)
		return;
	for (int i = 0; i < (int)(header->sh_size / header->sh_entsize); i++)
		if (gelf_getsym(data, i, &symbol) && symbol.st_size &&
		    GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
			add_entry(c, symbol.st_value);
}

static void add_entries(struct code *c, Elf *elf)
{
	struct sp_ehframe frames;
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	c->n = 0;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB ||
		     header.sh_type == SHT_DYNSYM))
			add_symbols(c, section, &header);
	if (!sp_ehframe_open(elf, &frames))
		return;
	for (size_t i = 0; i < frames.count; i++) {
		int32_t start;

		memcpy(&start, frames.table + 8 * i, sizeof(start));
		add_entry(c, frames.base + (uint64_t)(int64_t)start);
	}
}

/* Up to `most` bytes of each function. */
static void compare_code(struct code *c, uint64_t most)
{
	if (c->n)
		qsort(c->entries, c->n, sizeof(*c->entries),
		      sp_array_compare_u64);
	for (size_t i = 0; i < c->n; i++) {
		uint64_t at = c->entries[i], end = at + most;
		unsigned int length;

		if (i + 1 < c->n && c->entries[i + 1] == at)
			continue;
		if (i + 1 < c->n && c->entries[i + 1] < end)
			end = c->entries[i + 1];
		count.entries++;
		for (; at < end && at < c->end; at += length) {
			length = compare(c->bytes + (at - c->start),
					 c->end - at, c->path);
			if (!length)
				break;
		}
	}
}

static void compare_file(const char *path, uint64_t most)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	struct code c = {.path = path};
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Ehdr about;

	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &about) &&
	    about.e_machine == EM_X86_64 &&
	    about.e_ident[EI_CLASS] == ELFCLASS64 &&
	    (about.e_type == ET_DYN || about.e_type == ET_EXEC)) {
		count.files++;
		while ((section = elf_nextscn(elf, section))) {
			Elf_Data *data;

			if (!gelf_getshdr(section, &header) ||
			    header.sh_type != SHT_PROGBITS ||
			    !(header.sh_flags & SHF_EXECINSTR) ||
			    !(data = elf_rawdata(section, NULL)) ||
			    data->d_size == 0)
				continue;
			c.bytes = data->d_buf;
			c.start = header.sh_addr;
			c.end = header.sh_addr + data->d_size;
			add_entries(&c, elf);
			compare_code(&c, most);
		}
	}
	free(c.entries);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

static void check_count(const char *what)
{
	print_message("%lu files, %lu functions, %s: %lu instructions, %lu not "
		      "understood, %lu only by us\n",
		      count.files, count.entries, what, count.compared,
		      count.unknown, count.strange);
	assert_int_equal(count.wrong, 0);
	/* Seven in a million were too rare for us, on Debian 12. */
	assert_true(count.unknown <= count.compared / 20000);
	assert_true(count.strange <= count.compared / 100000);
}

TEST(whole_functions)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
		"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0",
		"/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4",
	};

	count = (struct count){0};
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		compare_file(paths[i], UINT32_MAX);
	check_count("whole");
	assert_true(count.compared > 100000);
}

static int visit(const char *path, const struct stat *about, int type,
		 struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_F && S_ISREG(about->st_mode))
		compare_file(path, ENTRY_BYTES);
	return 0;
}

TEST(every_entry)
{
	count = (struct count){0};
	if (!test_rounds(0, 1))
		return;
	assert_int_equal(nftw("/usr", visit, 64, FTW_PHYS | FTW_MOUNT), 0);
	check_count("their beginnings");
	assert_true(count.files > 1000);
}

static int begin(void **state)
{
	(void)state;
	elf_version(EV_CURRENT);
	return ZYAN_SUCCESS(ZydisDecoderInit(&decoder,
					     ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64))
		       ? 0
		       : -1;
}

TEST_MAIN(begin, NULL)
