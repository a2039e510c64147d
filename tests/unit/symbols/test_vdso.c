/* SPDX-License-Identifier: MIT */
/* Names of the kernel's own object, which has no file: that of this kernel is
 * in our memory. */
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "symbols/symbolizer.h"
#include "support/test.h"

#define BIAS 0x7f0000000000ull

/* One of its functions, and its build id. */
static const char *look_at_vdso(uint64_t *ret_address,
				uint8_t id[SP_FORMAT_BUILD_ID_MAX],
				size_t *ret_id_bytes)
{
	const ElfW(Ehdr) *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	const char *name = NULL;
	Elf_Scn *section = NULL;
	const void *found;
	GElf_Shdr shdr;
	GElf_Sym symbol;
	ssize_t n;
	Elf *elf;

	if (!header)
		return NULL;
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)(uintptr_t)header,
			 header->e_shoff +
				 (size_t)header->e_shnum * header->e_shentsize);
	n = dwelf_elf_gnu_build_id(elf, &found);
	assert_true(n > 0 && n <= SP_FORMAT_BUILD_ID_MAX);
	memcpy(id, found, (size_t)n);
	*ret_id_bytes = (size_t)n;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		Elf_Data *data = elf_getdata(section, NULL);

		gelf_getshdr(section, &shdr);
		for (int i = 1; shdr.sh_type == SHT_DYNSYM &&
				gelf_getsym(data, i, &symbol);
		     i++)
			if (symbol.st_size &&
			    GELF_ST_BIND(symbol.st_info) == STB_GLOBAL) {
				*ret_address = symbol.st_value;
				name = elf_strptr(elf, shdr.sh_link,
						  symbol.st_name);
			}
	}
	/* The name is in the object itself. */
	elf_end(elf);
	return name;
}

struct rig {
	struct sp_module module;
	struct sp_profile profile;
	struct sp_symbolizer *symbolizer;
};

static struct sp_symbol look_up(struct rig *rig, const uint8_t *id,
				size_t id_bytes, uint64_t address)
{
	const struct sp_symbolizer_options options = {.debug_path = "/none"};
	struct sp_symbols s;

	*rig = (struct rig){
		.module = {.id = 1,
			   .bias = BIAS,
			   .start_pc = BIAS,
			   .end_pc = BIAS + 0x10000,
			   .path = "[vdso]",
			   .build_id_len = (uint32_t)id_bytes},
		.profile = {.path = "test.sprof", .n_modules = 1},
	};
	rig->profile.modules = &rig->module;
	memcpy(rig->module.build_id, id, id_bytes);
	assert_int_equal(sp_symbolizer_new(&rig->profile, &options,
					   &rig->symbolizer, NULL),
			 0);
	s = sp_symbolizer_lookup(rig->symbolizer, (struct sp_frame){1, address},
				 false);
	assert_int_equal(s.count, 1);
	return s.symbol[0];
}

static void fail_problem(void *arg, const struct sp_module *module,
			 const char *reason)
{
	(void)arg;
	(void)module;
	fail_msg("%s", reason);
}

TEST(names)
{
	static const uint8_t other[] = {1, 2, 3};
	uint8_t id[SP_FORMAT_BUILD_ID_MAX];
	uint64_t address = 0;
	size_t id_bytes = 0;
	const char *name = look_at_vdso(&address, id, &id_bytes);
	struct rig rig;

	if (!name)
		skip();
	assert_string_equal(look_up(&rig, id, id_bytes, address).function,
			    name);
	sp_symbolizer_free(rig.symbolizer);
	/* That of another kernel has none, which is no problem. */
	assert_true(look_up(&rig, other, sizeof(other), address).is_fallback);
	sp_symbolizer_problems(rig.symbolizer, fail_problem, NULL);
	sp_symbolizer_free(rig.symbolizer);
	/* Nor one without a build id. */
	assert_true(look_up(&rig, other, 0, address).is_fallback);
	sp_symbolizer_free(rig.symbolizer);
}

TEST_MAIN(NULL, NULL)
