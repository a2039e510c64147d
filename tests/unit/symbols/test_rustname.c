/* SPDX-License-Identifier: MIT */
/*
 * Rust names that are safe to demangle: grammar, cut names, nesting, references
 * without end.
 */

#include "symbols/demangle.h"
#include "symbols/rustname.h"
#include "support/test.h"

/* As rustc writes them: every production of the grammar. */
static const char *const good[] = {
	"_RNvC5alloc3run",
	"_RNvNtCs1234_7mycrate3foo3bar",
	"_RNvC6_123foo3bar",
	"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
	"_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_",
	"_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_"
	"4iter8iterator8Iterator9rpositionNCNgNpB9_6memchr7memrchrs_0E0Bb_",
	"_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuE"
	"p6OutputuEL_ECs1iopQbuBiw2_3std",
	"_RMCs4fqI2P2rA04_13const_genericINtB0_8UnsignedKhb_E",
	"_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKsn98_E",
	"_RMCs4fqI2P2rA04_13const_genericINtB0_4BoolKb1_E",
	"_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc2202_E",
	"_RNvMNtC3foo3barNtB2_5Guard4dropC4main",
	"_RINvC1a1fFG0_RL1_hRL0_tEuE",
	"_RINvC1a1fFUKCTlAhj10_SmPoOyQeEEuE",
	"_RINvC1a1fFK3abiEuE",
	"_RINvC1a1fDG_INtC1b5TraitL0_Ep1xlEL_E",
	"_RNvYTppENtC1a1T1fC1b",
	"_RINvC1a1fKpKB8_E",
	"_RNvC1a1f.llvm.123",
};

TEST(grammar)
{
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!sp_rustname_is_tame(good[i]))
			fail_msg("%s was refused", good[i]);
}

/* Cut anywhere, nothing is read behind the end; cut names are refused or are
 * names themselves. */
TEST(cut)
{
	size_t i, n;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		for (n = 2; n < strlen(good[i]); n++) {
			FREED char *name = strndup(good[i], n);

			assert_non_null(name);
			sp_rustname_is_tame(name);
		}
	}
	assert_false(sp_rustname_is_tame("_R"));
	assert_false(sp_rustname_is_tame("_RNvC5alloc3ru"));
	assert_false(sp_rustname_is_tame("_RNvC5alloc"));
	assert_false(sp_rustname_is_tame("_RINvC1a1fh"));
}

TEST(lifetimes)
{
	/* "1A_" is 62 + 36 + 1 = 99, "1B_" one more. */
	assert_true(sp_rustname_is_tame("_RINvC1a1fFG1A_hEuE"));
	assert_false(sp_rustname_is_tame("_RINvC1a1fFG1B_hEuE"));
	assert_false(sp_rustname_is_tame("_RINvC1a1fFGzzzzzzzzzz_hEuE"));
	assert_false(sp_rustname_is_tame(
		"_RINvC1a1fFGZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ0_hEuE"));
	assert_false(sp_rustname_is_tame("_RINvC1a1fDGzzz_C1bEL_E"));
	/* In an identifier and in a number it is a letter like others. */
	assert_true(sp_rustname_is_tame("_RNvC1a11fFGzzzz_hEu"));
	assert_true(sp_rustname_is_tame("_RNvCs4GzzzzzP_1a1f"));
}

TEST(references)
{
	assert_true(sp_rustname_is_tame("_RINvC1a1fTlB8_EE"));
	/* To itself, ahead, into an identifier, and into a number. */
	assert_false(sp_rustname_is_tame("_RINvC1a1fTlB9_EE"));
	assert_false(sp_rustname_is_tame("_RINvC1a1fTlBz_EE"));
	assert_false(sp_rustname_is_tame("_RINvC1a1fTlB3_EE"));
	assert_false(sp_rustname_is_tame("_RINvCs0_1a1fTlB3_EE"));
}

TEST(nesting)
{
	char name[SP_MANGLED_MAX + 1];
	size_t n;

	for (n = 1; n < 1000; n++) {
		strcpy(name, "_RINvC1a1f");
		memset(name + 10, 'P', n);
		strcpy(name + 10 + n, "hE");
		assert_int_equal(sp_rustname_is_tame(name), n < 299);
	}
}

/* A name that kept the demangler busy without end: the lifetimes of a function
 * type in a path that is not printed. */
TEST(endless)
{
	const char *name = "_RXFGzzzzzzzzzzzz_hEuC1aC1b";
	char *plain = sp_demangle(name);

	assert_null(plain);
	plain = sp_demangle("_RNvXINvC1a1fFGzzzzzzzzzzzz_hEuEhC1b1g");
	assert_null(plain);
	plain = sp_demangle("_RNvXINvC1a1fFG0_hEuEhC1b1g");
	assert_string_equal(plain, "<u8 as b>::g");
	free(plain);
}

TEST_MAIN(NULL, NULL)
