/* SPDX-License-Identifier: MIT */
/* Frees of addresses and their samples, compared with a search through all
 * events. */
#include "base/rng.h"
#include "read/pairing.h"
#include "support/test.h"

#define EVENTS  20000u
#define THREADS 5u

struct event {
	bool is_birth;
	bool is_over; /* of a birth: it has ended */
	uint64_t address;
	uint64_t id, size_bytes, period_bytes;
	uint32_t thread;
};

static struct event events[EVENTS];
static size_t n_events;
static struct sp_rng rng;

static uint64_t below(uint64_t n)
{
	return sp_rng_next(&rng) % n;
}

/* The last one at the address, if it goes on. */
static struct event *model_open(uint64_t address)
{
	for (size_t i = n_events; i--;)
		if (events[i].is_birth && events[i].address == address)
			return events[i].is_over ? NULL : &events[i];
	return NULL;
}

static uint64_t model_age(const struct event *born, uint32_t thread)
{
	uint64_t age = 0;

	for (size_t i = 0; i < n_events; i++) {
		if (events[i].is_birth && events[i].period_bytes > 1)
			return SP_UNKNOWN;
		if (events[i].is_birth && events[i].thread == thread &&
		    &events[i] > born)
			age += events[i].size_bytes;
	}
	return thread == born->thread && thread != UINT32_MAX ? age
							      : SP_UNKNOWN;
}

static void check_birth(struct sp_pairing *p, const struct event *e)
{
	struct event *old = model_open(e->address);
	struct sp_open_object *born, missed;

	assert_int_equal(sp_pairing_birth(p, e->address, e->thread,
					  e->size_bytes, e->period_bytes, &born,
					  &missed),
			 old != NULL);
	born->id = e->id;
	born->group = 1 + (uint32_t)e->id;
	if (!old)
		return;
	assert_true(missed.id == old->id);
	old->is_over = true;
}

static void check_free(struct sp_pairing *p, const struct event *e)
{
	const struct sp_pairing_place place = sp_pairing_find(p, e->address);
	struct event *old = model_open(e->address);

	assert_int_equal(place.object != NULL, old != NULL);
	if (!old)
		return;
	assert_true(place.object->id == old->id);
	assert_true(sp_pairing_age(p, place.object, old->thread, e->thread) ==
		    model_age(old, e->thread));
	sp_pairing_drop(p, &place);
	old->is_over = true;
}

static void check(uint64_t addresses, uint64_t step, size_t n,
		  size_t sampled_from)
{
	FREED_BY(sp_pairing_done) struct sp_pairing p;

	sp_pairing_init(&p);
	sp_rng_init(&rng, addresses, step);
	for (n_events = 0; n_events < n;) {
		const uint64_t thread = below(THREADS);
		struct event e = {
			.is_birth = below(2),
			.address = UINT64_MAX - below(addresses) * step,
			.id = n_events + 1,
			.size_bytes = 1 + below(1000),
			.period_bytes = n_events < sampled_from ? 1 : 512,
			.thread = thread ? (uint32_t)thread : UINT32_MAX,
		};

		if (e.is_birth)
			check_birth(&p, &e);
		else
			check_free(&p, &e);
		events[n_events++] = e;
	}
	assert_in_range(p.n, 1, addresses);
}

/* Few addresses, so that frees are missing and of nothing all the time. */
TEST(few)
{
	check(10, 1, 3000, SIZE_MAX);
	check(10, 1ull << 60, 3000, SIZE_MAX);
}

TEST(many)
{
	check(2000, 16, 5000, SIZE_MAX);
}

#define APART (16ull * SP_PAIRING_UNITS * SP_PAIRING_PAGES)

/* Each in a page of its own, of which pages come and go. */
TEST(far_apart)
{
	check(2000, 16ull * SP_PAIRING_UNITS, 5000, SIZE_MAX);
	check(300, APART, 5000, SIZE_MAX);
}

/* Memory is proportional to what is open, however many addresses there were. */
TEST(moving)
{
	struct sp_pairing_place place;
	struct sp_open_object *born, missed;
	FREED_BY(sp_pairing_done) struct sp_pairing p;

	sp_pairing_init(&p);
	for (uint64_t i = 0; i < 50000; i++) {
		const uint64_t address = i * APART;

		assert_int_equal(
			sp_pairing_birth(&p, address, 0, 1, 1, &born, &missed),
			0);
		if (i < 100)
			continue;
		place = sp_pairing_find(&p, address - 100 * APART);
		assert_non_null(place.object);
		sp_pairing_drop(&p, &place);
	}
	assert_int_equal(p.n, 100);
	assert_in_range(p.n_objects, 100, 101);
	assert_in_range(p.n_blocks, 100, 101);
	assert_in_range(p.areas_room, 200, 512);
}

/* The age is not known once samples are missing. */
TEST(sampled)
{
	check(50, 16, 2000, 1000);
}

TEST_MAIN(NULL, NULL)
