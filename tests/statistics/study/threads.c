/* SPDX-License-Identifier: MIT */
/*
 * threads: four workers that allocate the same in every run, whatever their
 * order.  They index text, answer requests in a tree of calls, read blocks,
 * and pass messages on, so that most of those are freed by another thread.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
/* The call before it is no tail call: its frame stays in the stack. */
#define STAY() __asm__ volatile("" ::: "memory")

#define WORKERS   4
#define ROUNDS    60
#define WORDS     2000
#define DEPTH     12
#define MAILBOXES 64

struct worker {
	pthread_t thread;
	uint64_t random;
	char *words[WORDS];
	_Atomic(char *) mailbox[MAILBOXES]; /* written by the one before */
	struct worker *next;
};

static uint64_t next_random(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static void *checked(void *p)
{
	if (!p)
		abort();
	return p;
}

static NOINLINE char *make_word(struct worker *w)
{
	char *word = checked(malloc(8 + next_random(w) % 56));

	word[0] = 'w';
	STAY();
	return word;
}

static NOINLINE void index_text(struct worker *w)
{
	void **index = checked(calloc(64, sizeof(*index)));

	for (size_t i = 0; i < WORDS; i++) {
		free(w->words[i]);
		w->words[i] = make_word(w);
		if (i >= 64 && (i & (i - 1)) == 0)
			index = checked(realloc(index, 2 * i * sizeof(*index)));
		index[i & 63] = w->words[i];
	}
	free(index);
}

/* Deeper calls need less. */
static NOINLINE void answer(struct worker *w, unsigned int depth)
{
	char *part = checked(malloc((4096u >> depth) + next_random(w) % 512));

	part[0] = 'p';
	if (depth < DEPTH)
		answer(w, depth + 1);
	if (depth < DEPTH / 2)
		answer(w, depth + 2 + depth % 3);
	free(part);
	STAY();
}

static NOINLINE void read_blocks(struct worker *w)
{
	for (int i = 0; i < 2; i++) {
		uint64_t r = next_random(w);
		char *block =
			checked(malloc((16384u << r % 6) + (r >> 32) % 5000));

		block[0] = 'b';
		free(block);
	}
	STAY();
}

/* Few are long, and together these weigh as much as the short ones. */
static NOINLINE char *make_message(struct worker *w)
{
	uint64_t r = next_random(w);
	unsigned int exponent = (unsigned int)__builtin_ctzll(r | 1ull << 12);
	char *message = checked(malloc((32u << exponent) + (r >> 48) % 32));

	message[0] = 'm';
	STAY();
	return message;
}

static NOINLINE void send_messages(struct worker *w)
{
	for (unsigned int i = 0; i < 1000; i++) {
		_Atomic(char *) *box = &w->next->mailbox[i % MAILBOXES];

		free(atomic_exchange(box, make_message(w)));
		free(atomic_exchange(&w->mailbox[i % MAILBOXES], NULL));
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < ROUNDS; i++) {
		index_text(w);
		for (int k = 0; k < 24; k++)
			answer(w, 0);
		read_blocks(w);
		send_messages(w);
	}
	return NULL;
}

int main(void)
{
	static struct worker workers[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		workers[i].random = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
		workers[i].next = &workers[(i + 1) % WORKERS];
	}
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	for (int i = 0; i < WORKERS; i++)
		if (pthread_join(workers[i].thread, NULL))
			return 1;
	return 0;
}
