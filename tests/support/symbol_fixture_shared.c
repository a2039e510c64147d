/* SPDX-License-Identifier: MIT */
/* The alternate file of symbol_fixture_dwz.c, of build id 77..77. */
__asm__(".section .debug_str, \"MS\", @progbits, 1\n"
	"	.byte 0\n"
	"	.asciz \"name_in_the_alternate_file\"\n"
	".section .debug_info, \"\", @progbits\n"
	"	.long 0\n"
	".section .note.gnu.build-id, \"a\", @note\n"
	"	.long 4, 20, 3\n"
	"	.asciz \"GNU\"\n"
	"	.fill 20, 1, 0x77\n");
