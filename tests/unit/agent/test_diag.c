/* SPDX-License-Identifier: MIT */
/* Loss counters, and the one line that the agent may say. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <errno.h>
#include <unistd.h>

#include "agent/sys/diag.h"
#include "base/rng.h"
#include "support/agent_fixture.h"
#include "support/test.h"

#define THREADS 4
#define ROUNDS  100000u

static void *lose(void *arg)
{
	for (unsigned int i = 0; i < ROUNDS; i++)
		sp_diag_lose((enum sp_loss)(i % SP_LOSS_COUNT),
			     *(const unsigned int *)arg);
	return NULL;
}

TEST(counters)
{
	uint64_t losses[SP_FORMAT_LOSSES], total = 0;
	pthread_t threads[THREADS];
	unsigned int weights[THREADS];

	sp_diag_reset();
	for (unsigned int i = 0; i < THREADS; i++) {
		weights[i] = 1 + i;
		assert_int_equal(
			pthread_create(&threads[i], NULL, lose, &weights[i]),
			0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	memset(losses, 0xaa, sizeof(losses));
	sp_diag_read(losses);
	for (unsigned int i = 0; i < SP_FORMAT_LOSSES; i++) {
		uint64_t want = 0;

		for (unsigned int k = i; k < ROUNDS && i < SP_LOSS_COUNT;
		     k += SP_LOSS_COUNT)
			want += 1 + 2 + 3 + 4;
		assert_true(losses[i] == want);
		total += want;
	}
	assert_true(agent_fixture_losses() == total && total == 10 * ROUNDS);
	sp_diag_reset();
	assert_true(agent_fixture_losses() == 0);
	sp_diag_read(losses);
	for (unsigned int i = 0; i < SP_FORMAT_LOSSES; i++)
		assert_true(losses[i] == 0);
}

TEST(decimal)
{
	struct sp_rng rng;
	char got[24], want[24];

	sp_rng_init(&rng, 9, 1);
	for (int i = 0; i < 100000; i++) {
		uint64_t v = i < 20    ? (uint64_t)i
			     : i == 20 ? UINT64_MAX
				       : sp_rng_next(&rng) >> (i % 64);

		snprintf(want, sizeof(want), "%" PRIu64, v);
		memset(got, 'x', sizeof(got));
		assert_ptr_equal(sp_diag_decimal(got, v), got);
		assert_string_equal(got, want);
	}
}

/* Standard error goes into a pipe while this is open. */
struct capture {
	int saved;
	int read_end;
};

static void capture_begin(struct capture *c)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	c->saved = dup(2);
	assert_true(c->saved >= 0);
	assert_int_equal(dup2(ends[1], 2), 2);
	close(ends[1]);
	c->read_end = ends[0];
}

/* The text so far, terminated; its length. */
static size_t capture_end(struct capture *c, char *text, size_t size)
{
	ssize_t n = read(c->read_end, text, size - 1);

	dup2(c->saved, 2);
	close(c->saved);
	close(c->read_end);
	if (n < 0)
		n = 0;
	text[n] = '\0';
	return (size_t)n;
}

TEST(say)
{
	struct capture c;
	char text[2000], big[1000];

	sp_diag_set_quiet(0);
	capture_begin(&c);
	sp_diag_say("one", " and ", "two", NULL);
	capture_end(&c, text, sizeof(text));
	assert_string_equal(text, "sampleprof: one and two\n");

	/* What a terminal would obey is not passed on. */
	capture_begin(&c);
	sp_diag_say("\x1b]52;c;x\x07\r\n\x7f\x9b", "\xc3\xa9", NULL);
	capture_end(&c, text, sizeof(text));
	assert_string_equal(text, "sampleprof: ?]52;c;x???????\n");

	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	capture_begin(&c);
	sp_diag_say(big, "never seen", NULL);
	assert_int_equal(capture_end(&c, text, sizeof(text)), 600);
	assert_int_equal(text[599], '\n');
	assert_int_equal(text[598], 'a');

	capture_begin(&c);
	sp_diag_set_quiet(1);
	sp_diag_say("nothing", NULL);
	sp_diag_set_quiet(0);
	assert_int_equal(capture_end(&c, text, sizeof(text)), 0);
}

#define ALL UINT64_MAX
#define LINE                                                                   \
	"sampleprof: SAMPLEPROF_OUT=none: what the probes have not seen, or "  \
	"not right: samples_not_followed 7, calls_left 2\n"

/* Fill a pipe to its last byte. */
static void fill(int fd)
{
	static const char block[4096];

	while (write(fd, block, sizeof(block)) > 0 || write(fd, block, 1) > 0)
		;
}

TEST(say_losses)
{
	struct capture c, other;
	char text[2000];

	sp_diag_reset();
	capture_begin(&c);
	sp_diag_remember_output();
	sp_diag_say_losses(ALL);
	sp_diag_lose(SP_LOSS_RSS, 9);
	sp_diag_say_losses(1u << SP_LOSS_LEFT);
	sp_diag_lose(SP_LOSS_LEFT, 2);
	sp_diag_lose(SP_LOSS_LIVE_TABLE, 7);
	sp_diag_say_losses(1u << SP_LOSS_LEFT | 1u << SP_LOSS_LIVE_TABLE);
	sp_diag_set_quiet(1);
	sp_diag_say_losses(ALL);
	sp_diag_set_quiet(0);
	/* Another file got the number meanwhile. */
	capture_begin(&other);
	sp_diag_say_losses(ALL);
	assert_int_equal(capture_end(&other, text, sizeof(text)), 0);
	capture_end(&c, text, sizeof(text));
	assert_string_equal(text, LINE);
	sp_diag_reset();
}

/* No wait and no signal. */
TEST(say_losses_to_nobody)
{
	struct capture c;
	char text[10];

	sp_diag_lose(SP_LOSS_LEFT, 2);
	capture_begin(&c);
	sp_diag_remember_output();
	fill(2);
	assert_int_equal(fcntl(2, F_SETFL, 0), 0);
	alarm(HUNG_S);
	sp_diag_say_losses(ALL);
	alarm(0);
	capture_end(&c, text, sizeof(text));
	capture_begin(&c);
	sp_diag_remember_output();
	close(c.read_end);
	sp_diag_say_losses(ALL);
	capture_end(&c, text, sizeof(text));
	c.saved = dup(2);
	close(2);
	sp_diag_say_losses(ALL);
	sp_diag_remember_output();
	sp_diag_say_losses(ALL);
	dup2(c.saved, 2);
	close(c.saved);
	sp_diag_reset();
}

TEST(errno_names)
{
	assert_string_equal(sp_diag_errno(ENOSPC),
			    "no space left on the device (ENOSPC)");
	assert_string_equal(sp_diag_errno(EACCES),
			    "permission denied (EACCES)");
	assert_string_equal(sp_diag_errno(EREMOTEIO), "EREMOTEIO");
	/* Never a number. */
	for (int err = -1; err < 5000; err++) {
		const char *text = sp_diag_errno(err);

		assert_true(text[0] &&
			    strcspn(text, "013456789") == strlen(text));
	}
}

TEST_MAIN(NULL, NULL)
