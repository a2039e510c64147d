/* SPDX-License-Identifier: MIT */
/*
 * A program or library whose symbols, lines and unwind information are wanted,
 * at addresses all over.
 */
#include <string.h>

#include "format/fuzz/target.h"
#include "support/memfile.h"
#include "symbols/debuginfo.h"

static volatile size_t text_bytes;

/* All of the text is there. */
static void read_text(const char *text)
{
	if (text)
		text_bytes += strlen(text);
}

static void look_up(struct sp_debuginfo *info, uint64_t address)
{
	struct sp_location locations[SP_LOCATION_MAX];
	size_t n = sp_debuginfo_lookup(info, address, locations);
	uint64_t start;

	FUZZ_ASSERT(n >= 1 && n <= SP_LOCATION_MAX);
	for (size_t i = 0; i < n; i++) {
		read_text(locations[i].function);
		read_text(locations[i].directory);
		read_text(locations[i].file);
		FUZZ_ASSERT(locations[i].is_inlined == (i + 1 < n));
	}
	if (sp_debuginfo_function_start(info, address, &start))
		FUZZ_ASSERT(start <= address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sp_symbolizer_options options = {
		.debug_path = "/nonexistent",
	};
	const struct sp_build_id any = {NULL, 0}, other = {data, 1};
	struct sp_debuginfo *info;
	struct memfile file;
	struct sp_error err;

	if (size == 0)
		return 0;
	memfile_open(&file);
	memfile_write(&file, 0, data, size);
	if (sp_debuginfo_open(file.path, &any, &options, &info, &err) == 0) {
		look_up(info, 0);
		look_up(info, UINT64_MAX);
		for (unsigned int i = 1; i < 64; i++)
			look_up(info, 1ull << i);
		for (uint64_t at = 0xfff; at < 0x5000; at += 0x21)
			look_up(info, at);
		sp_debuginfo_close(info);
	} else {
		FUZZ_ASSERT(err.message[0]);
	}
	if (sp_debuginfo_open(file.path, &other, &options, &info, &err) == 0)
		sp_debuginfo_close(info);
	memfile_close(&file);
	return 0;
}
