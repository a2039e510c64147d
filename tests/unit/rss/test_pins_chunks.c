/* SPDX-License-Identifier: MIT */
/*
 * What lies beside an object of glibc's malloc: heaps that are made up, chunk
 * by chunk, against a walk over all of it; the same with words that changed,
 * where nothing is believed that is not said twice; and the malloc of this
 * process.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/rng.h"
#include "rss/chunks.h"
#include "support/sanitized.h"
#include "support/test.h"

#define WORDS 65536u
#define BASE  0x10000000ull
#define MAX   6000u

static uint64_t words[WORDS];

static bool read_words(void *arg, uint64_t at, void *to, size_t bytes)
{
	(void)arg;
	if (at < BASE || at - BASE > sizeof(words) - bytes || at % 8)
		return false;
	memcpy(to, (const char *)words + (at - BASE), bytes);
	return true;
}

/* What a chunk is, beside what its header says. */
static struct chunk {
	uint64_t start, bytes;
	bool is_free;
} chunks[MAX];
static unsigned int n_chunks;

static uint64_t *word_at(uint64_t address)
{
	return &words[(address - BASE) / 8];
}

/* No two free ones follow each other, and the last is the top. */
static void make_heap(uint64_t seed)
{
	uint64_t at = BASE, end = BASE + sizeof(words);
	bool was_free = false;
	struct sp_rng rng;

	sp_rng_init(&rng, seed, 0);
	for (unsigned int i = 0; i < WORDS; i++)
		words[i] = sp_rng_next(&rng);
	n_chunks = 0;
	while (n_chunks < MAX && end - at > 8192) {
		const bool is_free = !was_free && sp_rng_next(&rng) % 3 == 0;
		uint64_t bytes = 32 + sp_rng_next(&rng) % 8 * 16;

		if (is_free && sp_rng_next(&rng) % 8 == 0)
			bytes += 4096;
		chunks[n_chunks++] = (struct chunk){at, bytes, is_free};
		*word_at(at + 8) = bytes | !was_free;
		if (is_free)
			*word_at(at + bytes) = bytes;
		was_free = is_free;
		at += bytes;
	}
	chunks[n_chunks++] = (struct chunk){at, end - at, true};
	*word_at(at + 8) = (end - at) | !was_free;
	if (was_free) { /* what is free before the top is the top's */
		n_chunks--;
		chunks[n_chunks - 1].bytes += end - at;
		at = chunks[n_chunks - 1].start;
		*word_at(at + 8) = (end - at) | 1;
	}
}

static struct sp_rss_beside look(unsigned int i)
{
	return sp_rss_chunks_look(read_words, NULL, chunks[i].start + 16,
				  chunks[i].bytes - 8);
}

static void check_chunk(unsigned int i)
{
	const struct sp_rss_beside b = look(i);
	const bool is_last = i + 2 == n_chunks;

	assert_int_equal(b.state, SP_RSS_BESIDE_KNOWN);
	assert_int_equal(b.start, chunks[i].start);
	assert_int_equal(b.end, chunks[i + 1].start);
	assert_int_equal(b.before_bytes,
			 i && chunks[i - 1].is_free ? chunks[i - 1].bytes : 0);
	assert_int_equal(b.is_last, is_last);
	assert_int_equal(b.last_bytes, is_last ? chunks[i + 1].bytes : 0);
	assert_int_equal(b.behind_bytes, !is_last && chunks[i + 1].is_free
						 ? chunks[i + 1].bytes
						 : 0);
}

TEST(walk)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		make_heap(seed);
		assert_true(n_chunks > 1000);
		for (unsigned int i = 0; i + 1 < n_chunks; i++)
			if (!chunks[i].is_free)
				check_chunk(i);
	}
}

/* A free chunk that was an object is none; nor is one of another length. */
TEST(gone)
{
	make_heap(1);
	for (unsigned int i = 0; i + 1 < n_chunks; i++) {
		if (chunks[i].is_free)
			assert_true(look(i).state != SP_RSS_BESIDE_KNOWN);
		assert_int_equal(sp_rss_chunks_look(read_words, NULL,
						    chunks[i].start + 16,
						    chunks[i].bytes + 1000)
					 .state,
				 SP_RSS_BESIDE_GONE);
	}
	assert_int_equal(sp_rss_chunks_look(read_words, NULL, 8, 10).state,
			 SP_RSS_BESIDE_GONE);
	assert_int_equal(
		sp_rss_chunks_look(read_words, NULL, BASE + 24, 10).state,
		SP_RSS_BESIDE_GONE);
}

/* One word of a header is another: what is found is what was there, or it is
 * found out, but for what only one word says: that a neighbour is in use. */
TEST(torn)
{
	unsigned int found_out = 0, looks = 0;
	struct sp_rng rng;

	sp_rng_init(&rng, 9, 0);
	make_heap(2);
	for (unsigned int k = 0; k < 20000; k++) {
		const unsigned int i =
			1 + (unsigned int)(sp_rng_next(&rng) % (n_chunks - 3));
		const unsigned int which =
			(unsigned int)(sp_rng_next(&rng) % 3);
		uint64_t *word = word_at(chunks[i + which - 1].start + 8);
		const uint64_t was = *word;
		struct sp_rss_beside b;

		if (chunks[i].is_free)
			continue;
		looks++;
		*word = sp_rng_next(&rng) >> (sp_rng_next(&rng) % 60);
		b = look(i);
		*word = was;
		found_out += b.state != SP_RSS_BESIDE_KNOWN;
		if (b.state != SP_RSS_BESIDE_KNOWN)
			continue;
		assert_true(b.before_bytes == 0 ||
			    b.before_bytes == chunks[i - 1].bytes);
		assert_true(b.behind_bytes == 0 ||
			    b.behind_bytes == chunks[i + 1].bytes);
	}
	assert_true(looks > 5000 && found_out > looks / 4);
}

TEST(mapped)
{
	memset(words, 0, sizeof(words));
	words[1] = 0x21000 | 2;
	assert_int_equal(
		sp_rss_chunks_look(read_words, NULL, BASE + 16, 0x20ff0).state,
		SP_RSS_BESIDE_LARGE);
}

/* Page by page, beside what malloc_trim does. */
TEST(trim)
{
	for (uint64_t start = 0; start < 8192; start += 16)
		for (uint64_t bytes = 32; bytes < 20000; bytes += 176) {
			uint64_t from, to, pages = 0;

			for (uint64_t page = 0; page < 32768; page += 4096)
				pages += page >= start + 48 &&
					 page + 4096 <= start + bytes;
			if (bytes <= 4095 + 48)
				pages = 0;
			sp_rss_chunks_trim(start, bytes, 4096, &from, &to);
			assert_int_equal(to - from, pages * 4096);
			assert_true(to == from || (from >= start + 48 &&
						   to <= start + bytes));
		}
}

/* Not all that is asked for is there: the heap ends behind the last chunk. */
static bool read_own(void *arg, uint64_t at, void *to, size_t bytes)
{
	const struct iovec here = {to, bytes}, there = {(void *)at, bytes};

	(void)arg;
	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) ==
	       (ssize_t)bytes;
}

/* Of three objects the middle one goes: it is a hole for both others. */
TEST(own_malloc)
{
	struct sp_rss_beside before, behind;
	void *p[3];

	if (SP_SANITIZED) /* with a malloc of its own */
		skip();
	for (unsigned int i = 0; i < 3; i++)
		p[i] = malloc(3000);
	/* qemu-user has no process_vm_readv */
	if ((char *)p[2] - (char *)p[0] != 2 * 3008 ||
	    !read_own(NULL, (uintptr_t)p, &before, sizeof(p[0])))
		skip();
	free(p[1]);
	before = sp_rss_chunks_look(read_own, NULL, (uintptr_t)p[0], 3000);
	behind = sp_rss_chunks_look(read_own, NULL, (uintptr_t)p[2], 3000);
	assert_int_equal(before.state, SP_RSS_BESIDE_KNOWN);
	assert_int_equal(behind.state, SP_RSS_BESIDE_KNOWN);
	assert_int_equal(before.behind_bytes, 3008);
	assert_int_equal(behind.before_bytes, 3008);
	free(p[0]);
	free(p[2]);
}

TEST_MAIN(NULL, NULL)
