/* SPDX-License-Identifier: MIT */
/*
 * Debug information as dwz leaves it, which is no program that the tests need:
 * the name of `dwz_symbol` is in an alternate file, at offset 1 of its
 * .debug_str (DWARF 4, DW_FORM_GNU_strp_alt).  Tests write over the link.
 */
__asm__(".text\n"
	".globl dwz_symbol\n"
	".type dwz_symbol, @function\n"
	"dwz_symbol:\n"
	".Lstart:\n"
	"	.fill 64, 1, 0x90\n"
	"	.byte 0\n"
	".Lend:\n"
	".size dwz_symbol, . - dwz_symbol\n"
	".section .debug_abbrev, \"\", @progbits\n"
	".Labbrev:\n"
	"	.uleb128 1, 0x11\n" /* DW_TAG_compile_unit, with children */
	"	.byte 1\n"
	"	.uleb128 0x11, 0x01, 0x12, 0x07, 0, 0\n" /* low_pc, high_pc */
	"	.uleb128 2, 0x2e\n"                      /* DW_TAG_subprogram */
	"	.byte 0\n"
	"	.uleb128 0x03, 0x1f21\n" /* name: DW_FORM_GNU_strp_alt */
	"	.uleb128 0x11, 0x01, 0x12, 0x07, 0, 0\n"
	"	.byte 0\n"
	".section .debug_info, \"\", @progbits\n"
	"	.long .Linfo_end - .Linfo\n"
	".Linfo:\n"
	"	.2byte 4\n"
	"	.long .Labbrev\n"
	"	.byte 8\n"
	"	.uleb128 1\n"
	"	.quad .Lstart, .Lend - .Lstart\n"
	"	.uleb128 2\n"
	"	.long 1\n"
	"	.quad .Lstart, .Lend - .Lstart\n"
	"	.byte 0\n"
	".Linfo_end:\n"
	".section .gnu_debugaltlink, \"\", @progbits\n"
	"	.asciz \"/a/long/way/from/here/to/the/.dwz/dir/shared.debug\"\n"
	"	.fill 20, 1, 0x77\n");
